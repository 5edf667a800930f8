"""Our templates by label: data, one a line.

"[a|b|]" picks one alternative, "{slot}" a value; {title}, {artist}, {author} and {product} come from training sources.
"""

from __future__ import annotations

from collections.abc import Mapping


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "product_search": _lines("""
        [is the|is this|are your|how to check if the|how do i know if the] [product|products|{item}] [original|\
            genuine|fake or original|authentic|safe to use]
        [original|genuine|fake|duplicate|authentic] [product|products|{item}][ or not|]
        [expiry date|shelf life|expiration|manufacturing date|ingredients|dosage|side effects|benefits|uses|price|\
            size|weight] [of|for] [the|this] [product|{item}]
        [any|are there|does it have] [side effects|discounts|offers|other colours|bigger sizes|better options|\
            new arrivals]
        [i want to|can i|i would like to|how do i] [buy|see|check|know about|compare] [the|your|some] [product|\
            products|{item}]
        [what|which] [products|brands|variants|models|types of {item}] [do you have|do you sell|are available|\
            should i choose]
        [show me|suggest|recommend|give me|need] [some |a good |the best |][product|products|supplement|\
            {item}] for [{person}|my face|my hair|weight loss|gym|energy]
        [which one|which product|which {item}|what] is [better|best|cheaper|right for me|good for {person}]
        [what are the|available|all|standard|custom] [sizes|size options|dimensions|size chart|length and width]
        [what size|which size|how big a {item}] [do i need|should i order|should i take|fits a double bed|\
            is right for me]
        [discount|offers|offer|coupon|deal|sale|combo|price list|low price|best price|catalogue]
        [current|latest|any|today's|more] [discount|offers|deals|sale][ going on| available| on {item}| for {brand}|]
        [difference|compare|comparison] [between {item} and {item}|of both products|of your products|between the two|\
            between the models]
        [features|specifications|details|price|weight|quality] of [the |][{brand} {item}|{product}|this product]
        [{item}|{brand}|{single}] [available|in stock|available in {size}][ or not|]
        i need [a|an|my|some] [{item}|{single}] [for {person}|with a {size} option|urgently|of good quality|]
        i [have|suffer from] [back pain|dry hair|a small room|joint pain|acne|low energy] [which {item} should i buy|\
            suggest me a product|]
        [weight gain|hair growth|fat burner|muscle building|immunity|sleep|skin whitening|energy] [product|products|\
            supplement|tablets|powder|cream|booster]
        [do you have|do you sell|have you got|is there|are there] [a |any |]{item} [in {colour}|for {person}|\
            under {price}|in {size}|]
        [where can i|can i|how can i|i want to|i would like to|i need to] [buy|get|order|find] [a |the |\
            ]{item}[ for {person}| in {size}|]
        [how much is|what is the price of|what's the cost of|price of|cost of|tell me the price of] [the |a |]{item}
        [how much does|what does] [the|a] {product} cost
        [{item} price|{item} prices|{brand} {item} price|price list {item}|{product} price|lowest price {item}]
        [which|what] {item} [is best|is good|should i buy|do you recommend|would you suggest] for {person}
        [what is the|tell me the|] difference between [the |]{item} and [the |]{item}
        [{brand} vs {brand} {item}|{product} vs {product}|compare {item} and {item}|{item} or {item}]
        is [the|this|your] {item} [good|safe|suitable|any good|ok] for {person}
        [does the|do the] {item} [come in|fit|work with|have|come with] [{colour}|{size}|a warranty|a cover|{brand}|\
            batteries]
        what [size|sizes|colour|colours|material|material mix|flavours|dimensions] [is the|are the|of|\
            does the] {item}[ come in|]
        [what size|which size] {item} [should i get|do i need|to order|fits me]
        [tell me about|more about|details of|i want to know more about|features of] [the |your |]{product}
        [side effects of|any side effects of|ingredients of|what is in|expiry date of|how to use|how do i use] [the |\
            ]{item}
        [is this|is your|are the] {item} [original|genuine|real leather|authentic|fake|organic|vegan|waterproof|\
            washable|in stock|available]
        [custom size|custom made|customised|made to measure] {item}
        [can you|do you] [make|customise] [a |]{item} in [my|a custom|a different] size
        [is there|do you have|are there|] [any |a ][discount|offer|sale|deal|offers|deals] on {item}
        [how long is|what is] the warranty [on|of] the {item}
        [recommend|suggest] [me |][a |some ][good |cheap |][{item}|{brand} {item}][ for {person}|]
        [i want to|how can i|what helps me|help me] [lose weight|sleep better|gain muscle|get rid of dandruff|\
            grow my hair|stop back pain|boost my immunity]
        [something|supplements|products|tablets|a cream|a gift] for [weight loss|hair fall|joint pain|better sleep|\
            acne|muscle gain|energy|back pain]
        [free trial|trial period|sample pack|starter kit|free sample] {item}
        [best|cheap|affordable|good|top rated|new|used|large|small|second hand] {item}[ for {person}| under {price}|]
        [{colour}|{brand}|{size}] {item}[ for {person}| {size}|]
        {item} [without|with] [straps|lid|battery|handles|light|cover|remote|sugar|zipper|wheels|drawers]
        {single}
        {single}
        {single}
        {single}
        {everyday}
        {everyday} [for {person}|{colour}|{size}|under {price}|on sale|with free shipping|made in usa|near me|set of 4]
        [{brand}|{colour}|best|cheap|large|mini|portable|waterproof|stainless steel|wooden|cordless] {everyday}
        [{diet} |]{grocery}[ {size}| under {price}|]
        {diet} {grocery}
        [can you|please|will you|] [recommend|suggest|show|help me find|advise] [me |][a |something |the best |\
            ][supplement|product|cream|food|exercise machine|tool|remedy][ that helps|] to {goal}
        [i want to|i need to|i would like to|trying to|how can i|want to] {goal}[ what should i buy| in a month|\
            , which product helps|]
        [something|anything|a product|what product|products|which supplement|medicine|powder|food] [that helps |][to|\
            which helps me to|so that i can] {goal}
        [best|good|natural|cheap|effective|suggest something] [for|against] {wish}
        {wish}[ product| supplement| remedy| solution| powder| kit|]
        [i have|i am suffering from|my problem is|i get] {wish}[ please suggest| what do you recommend| what helps|]
        [help me choose|i am confused about|not sure which is|i want to buy] [a|the best|\
            the right] {everyday}[ for {person}|]
        [{product}|{product} {colour}|{brand} {product}]
        {title} [poster|t-shirt|mug|lego set|costume|action figure|board game|phone case|bedding|backpack|wall art|\
            puzzle|funko pop|hoodie]
        [{artist}|{genre} music|movie|film|book] [t-shirt|poster|hoodie|lamp|shelf|stand|bookends|speaker|\
            themed bedding]
        [book|music|record|dvd|vinyl] [shelf|stand|light|rack|player|storage box|cover|binding tape|cabinet]
        [film|movie|game|song|story] [camera|projector|screen|controller|book stand|light box|theater seats]
        [return|shipping|mailing|delivery|address|parcel] [labels|stickers|boxes|bags|tape|scale|envelopes|\
            box outdoor|stamp]
        [order|account|invoice|receipt|address|guest|phone] [book|pad|books|notebook|printer|organizer|holder|file]
        [password|email|contact] [notebook|keeper book|sign|book large print]
        [contact|coloured contact] [lenses|lens case|lens solution|paper|cement|grill|microphone]
        [credit card|payment|cash|money|gift card|refund] [holder|wallet|box|terminal|belt|envelopes|counting machine|\
            clip]
        [customer service|reception|order] [desk|bell|headset|counter|sign]
        [gps tracker|tracking collar|tracking device|luggage tracker] [for dogs|for cars|with no subscription|for kids|]
        [cancelling|noise cancelling|active noise cancelling] [headphones|earbuds|headset]
        [air|water|pipe] [return grille|return vent cover|return valve|exchange filter|return hose]
        [question mark|review|complaint] [pillow|board|box|cards]
        [weather|news|alarm|map|travel] [station|stand|clock|clock for kids|poster|pillow|shutters]
        [translation|language|math|spelling] [device|flash cards|workbook stand|toys|game for kids]
        [recipe|music sheet|cook book] [box|stand|card holder|holder for kitchen]
        """),
    "media": _lines("""
        [turn on|switch on|put on|tune to|set|change to|activate|open] [the |my |][radio|fm radio|{genre} station|\
            music|podcast|news station|audiobook]
        [what is|what's|who is] [my favourite song|the singer of this song|playing right now|the name of this band|\
            this artist|on the radio]
        [next|previous|last|latest|first] [episode|chapter|song|track] of [{title}|the podcast|my audiobook]
        {title} [2|3|part 2|vol 1|volume 2|box set|the movie|trilogy]
        [{title}|{title}|{title}] [{author}|]
        [play|i want to hear|put on|listen to|can you play|start] {artist}
        [i want to|can i|where can i|how can i|is it possible to] [watch|stream|read|see|listen to] {title}[ online|\
             tonight| for free|]
        {title} [movie|film|book|novel|audiobook|soundtrack|song|album|trailer|ebook|series|full movie|paperback|\
            lyrics|season 2]
        [the movie|the film|the book|the novel|the song|the album] {title}
        {title} by {author}
        {author} [books|novels|new book|short stories|audiobook|book series]
        [books|novels|short stories] by {author}
        [songs|music|albums|greatest hits|tracks] by {artist}
        {artist} [songs|music|albums|greatest hits|live|discography|new album|concert film|playlist]
        [new|best|top|good|classic|popular] {genre} [movies|films|books|novels|songs|music|albums|series|podcasts]
        [recommend|suggest|show] me [a |some |][good |new |]{genre} [movie|film|book|novel|album|series]
        [what|which] {genre} [movie|film|book|show] should i [watch|read] [next|tonight|]
        [podcast|documentary|audiobook|book|books|film|magazine] [about|on] {topic}
        [i want to listen to|play|find|put on|turn on|resume|continue] [a |the |my |some |][{topic} podcast|radio|\
            jazz radio|audiobook|{genre} music|podcast]
        [what|which] [movies|films|shows] are [playing|on|showing] [near me|tonight|in the cinema|at the theater|\
            this weekend|]
        [do you have|can i buy|is there|looking for|i am looking for] [the book|the film|the movie|the song|the album|\
            the audiobook of] {title}
        [{title} {author}|{author} {title}]
        [do you have|i am looking for|i need|i want] {title}[ by {author}| on audiobook|]
        [what song is this|name of this song|who sings this song|what is this song called|tell me what is playing|\
            which album is this song on]
        [what are|any] [good|some good] [movies|films|books|novels] [with good ratings|for the weekend|this year|\
            to read|to watch]
        [return to oz|order of the phoenix|the return of the king|the lost order|account rendered|the invoice|\
            the refund|the delivery man|return to me|points of contact|first contact|the complaint|the package|\
            signed sealed delivered]
        [refund policy book|book about customer service|novel about a lost parcel|film about a mail carrier|\
            song about a broken order|podcast about online shopping]
        [movie|film|song|book] about a [{item}|{single}|{sight}]
        """),
    "order_tracking": _lines("""
        [status|current status|delivery status|order details|my order number|order id|tracking id|tracking number|\
            consignment number][ please|]
        [what is|please give me|i want|need|check|tell me|give me] [the |my |an ][order status|status|\
            update on my order|tracking id|status of my order|order details|update]
        [my|about my] [previous|last|recent|old|current|pending] [order|orders|parcel|delivery]
        [why|how come] [so late|so much delay|so slow|is it taking so many days|no update on my order]
        [is|are] [delivery|you delivering|home delivery|products delivered] [available |][at|in|to] [my pincode|\
            this pin code|my postcode|{place}|my area|pincode {number}]
        [check|enter|change] [my |][pincode|pin code|postcode|zip code][ for delivery| serviceable| delivery|]
        [pincode|pin code|zip code|my pincode is] {number}[ delivery available|]
        [when|how soon] [will|can|do] i [get|receive] [my order|the product|it|the delivery|my {item}]
        [delivery|order|parcel] [not received|not yet received|is pending|got delayed|stuck since {number} days|\
            marked delivered but not received]
        [are you|will you be] [delivering|shipping] [now|these days|during holidays|on weekends|during the strike|\
            in {place}]
        [how many days|how much time|how long] [for|until|to get] [delivery|my parcel|the product delivered|\
            dispatch][ to {place}|]
        [where is|where's|what about|status of|track|find|any news on|locate] [my|the] [order|parcel|package|delivery|\
            shipment|{item}|order number {number}]
        [order|parcel|package|shipping|delivery|shipment] [status|tracking|update|location|progress|delay|delayed|\
            late|missing|lost]
        [track|tracking] [order|parcel|package|number|{number}|my {item}]
        [when will|when does|when is] my [order|parcel|package|{item}] [arrive|come|get here|be delivered|ship|reach me]
        [why is|why's] my [order|parcel|package|{item}|delivery] [late|delayed|not here|taking so long|stuck|\
            still pending]
        [my|the] [order|parcel|package|{item}] [has not arrived|hasn't arrived|did not come|is late|is delayed|\
            never came|is not delivered yet|says delivered but i got nothing]
        [i haven't|i have not|i still haven't|i didn't|we have not] [received|got|gotten] [my|the] [order|parcel|\
            package|{item}|item][ yet|]
        [i ordered|ordered] [a |]{item} [last week|two weeks ago|on the {number}|last month] [and it is not here|\
            still nothing|where is it|no delivery yet]
        [it's been|it has been] [two weeks|10 days|a month] [and no|without a|still no] [delivery|parcel|order]
        [has my|did my] [order|parcel|{item}] [shipped|been shipped|ship|been dispatched|left the warehouse][ yet|]
        [do you|can you|will you] [deliver|ship|send] [to {place}|{day}|abroad|internationally|to a po box|on weekends]
        [delivery|shipping] [to {place}|time|times|options|cost|costs|fee|charges|{day}|methods|date]
        [is delivery|is shipping] [available|possible|free] [to {place}|in {place}|{day}|]
        [how long does|how many days does|how fast is] [delivery|shipping|it take to deliver|\
            a delivery to {place}] [take|to {place}|]
        [if i order {day} when will it arrive|when will i get it if i order now|can i get it {day}|\
            can i get the {item} {day}|will it arrive {day}]
        [express|next day|same day|overnight|home|free] [delivery|shipping][ to {place}|]
        [when will the {item} be delivered|delivery date of my {item}|expected delivery|estimated arrival of my order]
        """),
    "order_change": _lines("""
        [cancel|cancel order|cancellation|cancel it|order cancel|cancel my product|please cancel my order|\
            cancel request]
        [change|wrong|update|modify|edit] [address|phone number on my order|delivery address|shipping address|\
            pin code][ please| in my order| of placed order|]
        [cancel|cancelling|stop|how to cancel|i want to cancel|can i cancel|please cancel] [my|the|an] [order|\
            purchase|{item} order|order {number}|last order|item]
        [order|purchase] [cancellation|cancel|modification|change|edit]
        [change|edit|update|correct|fix|modify] [my|the] [delivery address|shipping address|address|order|\
            address on my order|delivery date]
        [wrong|incorrect|old|different] [delivery address|shipping address|address|address on my order|size ordered|\
            item in my order]
        [i gave|i entered|i put] the wrong [address|house number|postcode|size|quantity][ on my order|]
        [add|remove|swap|replace] [a |the |]{item} [to|from|in] my [order|last order|purchase]
        [i ordered|ordered|bought] the wrong [{item}|size|colour] [by mistake|] [please change it|can i change it|\
            change before shipping]
        [i don't want|i no longer want|i do not need] [my order|the {item} i ordered|order {number}] [anymore|any more|]
        [send|deliver|ship] my order to [another|a different|my work|my new] address
        [is there a|what is the|] [cancellation|cancelation] [fee|charge|penalty|policy|cost]
        [add|save|set up|delete] [a |a new |another ][delivery|shipping] address
        [change|switch] the [colour|size|quantity|payment] [of|in] my order
        [can i|how do i|i want to] [change|upgrade|switch] to [express shipping on my order|another delivery slot|\
            a different size in my order]
        """),
    "returns_refunds": _lines("""
        [refund|return|exchange|replacement|replace|money back|returns][ please| option| request| query| information|\
             process|]
        [can i|how to|want to|i want to|need to|how can i] [return|exchange|replace|get refund for|\
            get replacement of] [the product|this product|my product|it|my last order|the {item}]
        [received|got|sent me] [an expired|a fake|a damaged|a wrong|an opened|a leaking] [product|{item}|item|bottle|\
            box]
        [return|returning|returns|send back|how to return|i want to return|can i return|i need to return] [my|a|the|\
            this] [order|item|product|{item}|damaged {item}|parcel]
        [exchange|swap|replace|replacement for|i want to exchange|can i exchange] [my|the|a] [{item}|order|item|\
            product|broken {item}|wrong size]
        [return|refund|exchange|replacement|returns] [policy|label|form|request|period|status|rules|process|time|\
            deadline|conditions]
        [refund|i want a refund|refund please|where is my refund|money back|i want my money back|\
            give me my money back|no refund yet]
        [get|request|ask for|claim|check] [a|my|the] [refund|money back|reimbursement|replacement][ for the {item}|]
        [my|the] {item} [is broken|is damaged|arrived broken|is defective|does not work|stopped working|\
            is the wrong colour|doesn't fit|has a missing part]
        [i received|i got|you sent me] [the wrong|a broken|a damaged|a used|a different] [item|{item}|product|size|\
            order]
        [wrong|damaged|broken|defective|faulty|missing] [item|product] [received|delivered|in my order]
        [how long does|when does|when will] [a|the|my] [refund|reimbursement|return] [take|arrive|get processed|\
            come through]
        [how do i|where do i|where can i] [send|ship|bring|drop] [it|my {item}|a {item}|the order] back
        [return|refund] [without receipt|after 30 days|in store|a gift|by post|opened items|for {item}]
        [is the|are] [{item}|sale items|opened items] [returnable|refundable]
        [i don't like|i am not happy with] [the|my] {item} [can i return it|i want to send it back|i want my money back]
        """),
    "payment_invoice": _lines("""
        [cod|cash on delivery|pay on delivery] [option|available|not available|possible|charges|limit|order|facility|]
        [is|why is|do you have|can i get|can i do|i want|need] [the |][cod|cash on delivery|emi|instalment plan|\
            installments] [available|option|facility|not working|not showing|for my order|]
        [emi|no cost emi|instalment|installment|monthly instalment] [option|plan|available|details|process|interest|\
            eligibility|with {brand} card|]
        [how to|how do i|can i|i want to] [pay in emi|convert it to emi|buy on emi|buy in instalments|\
            pay by instalments|get finance|pay half now]
        [prepaid|online payment|upi|net banking|wallet payment|debit card] [option|not working|available|failed|order|\
            possible]
        [payment|pay|paying] [methods|options|by card|by invoice|with paypal|in instalments|failed|problem|declined|\
            error|on delivery|by bank transfer|later]
        [can i|is it possible to|how can i|how do i|i want to] [pay|pay for the {item}|pay for my order] [with paypal|\
            by credit card|by invoice|in installments|on delivery|in cash|later|monthly|with a gift card|\
            by bank transfer]
        [cash on delivery|pay on delivery|installment plan|instalments|monthly payments|buy now pay later|\
            zero interest financing|cod][ available| option| not showing| for {item}| possible|]
        [do you|can you] [accept|take|offer|support] [paypal|credit cards|cash on delivery|apple pay|debit cards|\
            instalments|financing|monthly payments|gift cards][ for {item}|]
        [invoice|bill|receipt|vat invoice|tax invoice|duplicate bill|copy of invoice] [for my order|\
            for order {number}|download|copy|pdf|missing|please|for {item}]
        [i need|send me|where is|i want|download|get|where can i find|print] [my|an|the|a copy of my] [invoice|\
            receipt|bill|proof of purchase]
        [i was|why was i|my card was|my account was] [charged twice|double charged|charged the wrong amount|\
            overcharged|billed again|charged][ for order {number}|]
        [my|the] [payment|card|transaction|paypal payment] [failed|was declined|did not go through|is pending|\
            was rejected|keeps failing]
        [money|amount] [was taken|deducted|debited|left my account] but [no order|order not placed|order failed|\
            i got no confirmation]
        [the|a] [wrong amount|wrong name|wrong address|mistake] on [my|the] [invoice|bill|receipt]
        [how much did i pay|what did i pay|how much was i charged] for [my last order|order {number}|the {item}]
        [interest|down payment|minimum amount|number of months] for [instalments|financing|monthly payments]
        """),
    "account": _lines("""
        [log in|login|sign in|sign up|register|log out|create account|new account|my account|delete account|\
            close account|account settings|account locked]
        [forgot|forgotten|reset|change|lost|recover|i forgot|i can't remember|how do i reset] [my |][password|login|\
            username|pin|login details]
        [i can't|i cannot|unable to|why can't i|problem to] [log in|sign in|register|create an account|\
            access my account|log into the app]
        [change|update|edit] my [email|email address|phone number|name|profile|personal data|username|account details|\
            date of birth]
        [delete|close|deactivate|remove|cancel] [my|the|an] [account|profile|membership|user account|premium membership]
        [create|open|set up|register|make] [an|a new|a business] [account|profile|user]
        [subscribe to|unsubscribe from|sign up for|stop|cancel|no more] [the|your] [newsletter|emails|mailing list|\
            promotional emails|marketing emails]
        [newsletter|email] [subscription|sign up|unsubscribe|signup|preferences]
        [how do i|where do i|how can i|i want to|i need to] [register|sign up|log in|become a member|join|\
            open an account]
        [i am|i'm] [a new customer|new here|a first time customer|not registered] [how do i sign up|want to register|\
            how to create an account|]
        [my|the] [account|profile] [is blocked|is locked|was hacked|has the wrong name|does not work|was suspended]
        [the verification code|the confirmation email|the password reset email|otp] [does not arrive|is not working|\
            never came|expired]
        [upgrade|downgrade|switch] [my account|to a premium account|my membership|to a business account]
        [registration|sign up|signup|login] [problem|error|page|failed|not working|issue]
        """),
    "contact": _lines("""
        [this is|it is] [urgent|very urgent|an emergency|really important] [please help|please answer|someone reply|]
        [is anyone there|is anybody available|anyone available to help|hello is somebody there|please reply|answer me|\
            respond please|talk to me]
        [working|office|opening|business|call centre|service] [hours|timings|time] [of customer care|\
            of your call centre|of support|]
        [i want|need|give me|send me|share] [your|the|customer care|a contact] [number|phone number|mail id|email|\
            whatsapp number|contact details]
        [fraud|cheaters|pathetic|rude|bad|poor|worst] [company|service|support|customer care|staff|experience]
        [i have|there is] [a problem|an issue|a question|a query] [please help|talk to an agent|connect me to support|\
            call me]
        [fix|solve|resolve] my [problem|issue|complaint] [now|immediately|today|asap]
        [contact|contact us|customer service|customer support|customer care|help desk|hotline|live chat|support|\
            call centre|helpline][ number| phone| email| hours| please|]
        [how do i|how can i|where can i|i want to|i need to|can i] [contact|reach|call|talk to|speak to|email|\
            chat with] [you|customer service|a person|someone|an agent|a human|your support|the manager]
        [phone number|telephone number|email address|opening hours|address] of [customer service|the support|\
            your company|the call centre]
        [call me|call me back|please call me|i want a callback|ring me|someone call me][ today| now| on {number}|]
        [talk|speak|chat|connect me|put me through] [to|with] [a human|an agent|a real person|somebody|your manager|\
            a representative|someone]
        [complaint|file a complaint|make a complaint|i want to complain|complain about] [about the {item}|\
            about your service|about the delivery driver|about the staff|]
        [your service is|your support is|this shop is|you guys are] [terrible|awful|very bad|useless|slow|a joke|\
            the worst|disappointing]
        [nobody|no one] [answers|replies|picks up|responds to my emails|helps me|answers the phone]
        [write|leave|post|submit|give] [a|my|some] [review|feedback|rating|opinion|comment][ for the {item}|\
             about your shop|]
        [i am|i'm] [very unhappy|angry|disappointed|fed up|not satisfied] with [your service|your shop|the support|\
            this company]
        [what time|when] [do you|does customer service] [open|close|answer the phone]
        [waste of time|worst service ever|never buying here again|fix this now|i need help now|is anybody there]
        """),
    "other": _lines("""
        [is it|why is it|what happens if it is] [bad|safe|legal|healthy|normal] to [sleep late|eat raw eggs|\
            drive barefoot|swim after eating|skip breakfast|mix bleach]
        [what's|what is|which is] the best [university for law|way to learn chess|time to visit {place}|\
            exercise for legs|job for me|month to plant trees]
        [how do i|how can i|what is the best way to] [remove a stain|get better at chess|learn spanish|\
            start a business|fix a flat tire|lose a cold|meditate]
        [can i|should i|can you] [mix paint with water|see art in {place}|get a visa for {place}|\
            help with my homework|do my taxes|find me a job]
        [any|what are the|latest|top] [headlines|news|stories|earthquakes|job openings|traffic jams] [today|\
            in {place}|in my area|]
        [is my|where is my|how old is my] [dog sick|car due for service|passport valid|grandfather's village|\
            flight on time|bus late]
        [what|which] [personality type am i|oil does my car take|team plays tonight|level am i|planet is closest|\
            language is spoken in {place}]
        [is the|when is the] [bank open|next football game|stock market up|library closed|strike over|election|\
            super bowl|parade]
        [when did|when was] [the |][first |]{item} [invented|come out|made]
        [who invented|who made|history of|what is the history of|where was] the [first |]{item}[ invented|]
        [how does|how do] [a|the] {item} work
        [how do you|how to|how do i] [clean|repair|make|fix|draw|spell|recycle|knit] [a|an old|my] {item}
        [why is|why are] [my |the ][{item}|{single}] [noisy|called that|so popular in japan|dangerous for birds|\
            made in china]
        [what does|meaning of|definition of|define] [refund|invoice|return|order|account|contact|reimbursement|\
            newsletter|parcel|{single}][ mean| in law| in spanish| in english|]
        [order of operations|order of the planets|law and order meaning|order of british kings|order of magnitude|\
            alphabetical order example|restraining order process]
        [return of investment formula|how do i file my tax return|tax return deadline|when do the birds return|\
            return statement in python|how to return a library book]
        [contact tracing explained|how do solar eclipses contact phases work|contact sports list|\
            first contact with native americans|what is a contact force]
        [who tracks santa|how to track a deer|track and field records|train track width|tracking a hurricane]
        [account of the battle of hastings|how do accountants work|opening a savings account|bank account interest|\
            twitter account of the president|how to close my bank account]
        [who pays income tax|how to pay my parking ticket|pay my electricity bill|\
            payment of reparations after world war 1|average pay of a nurse|who wrote the bill of rights]
        [cancel|change|book|track|reschedule] my [flight|dentist appointment|hotel room|dinner reservation|\
            gym membership|train ticket]
        [call|text|email|message] [my mom|the {trade}|my boss|a taxi|the police|my brother]
        [find|i need|where is|recommend] [a |the nearest |][{trade}] [near me|open now|in town|]
        [what is|what's] [the|] [capital|population|currency|president|area|language|flag] of {place}
        [weather|temperature|time|traffic|news|map|flights|jobs|hotels|restaurants] [in {place}|{day}|near {place}]
        [tell me about|history of|facts about|who discovered|where is|how old is|information on|pictures of|\
            i want to know about] {sight}
        {sight} [facts|history|wikipedia|location|age|size|map|discovery|timeline|explained]
        [set|turn on|turn off|switch off|start|stop] [the |an |my |][alarm|timer|lights|heating|kitchen light|robot]
        [translate|convert|calculate|spell|how do you say] [hello to french|10 miles to km|15 percent of {price}|\
            necessary|thank you in {place}]
        [recipe for|how to cook|how to bake|calories in] [pancakes|chicken soup|an apple|banana bread|rice|a boiled egg]
        [symptoms of|treatment for|what causes|cure for] [a cold|diabetes|measles|high blood pressure|headaches|the flu]
        [football|cricket|election|lottery|nba|exam] [results|scores|schedule|winner|date|table]
        [who is|how old is|where was|who is married to] [the president|the prime minister|the queen|\
            the ceo of {brand}|albert einstein|the mayor][ born|]
        [{brand} stock price|who owns {brand}|where is {brand} headquarters|ceo of {brand}|when was {brand} founded|\
            how many people work for {brand}]
        [cheap flights|bus times|train tickets|rent a car|apartments for rent|houses for sale|hotel deals] [to|in|\
            near] {place}
        [what should i|should i|why did i|how do i] [name my dog|study tonight|become a pilot|dream of snakes|\
            ask for a raise|lose my voice]
        [how many|how much] [people live in {place}|ounces in a pound|sleep do i need|days until christmas|\
            water should i drink|planets are there]
        [what is your name|are you a robot|tell me a joke|how are you|who made you|what can you do|\
            sing happy birthday|good morning|thank you so much]
        """),
}
