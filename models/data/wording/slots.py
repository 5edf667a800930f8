"""The values of the slots in our templates."""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("\n", " ").split(",") if part.strip())


SLOTS: Mapping[str, tuple[str, ...]] = {
    "item": _words(
        """laptop, phone case, running shoes, winter jacket, sofa, office chair, coffee machine, headphones,
        blender, yoga mat, backpack, desk lamp, curtains, bed frame, dining table, protein powder, face cream,
        shampoo, vitamins, dog food, cat litter, baby stroller, car seat, board game, puzzle, guitar, keyboard,
        mouse pad, printer, ink cartridges, monitor, tablet, smart watch, charger, usb cable, tv, soundbar,
        camera, tripod, tent, sleeping bag, bicycle, helmet, treadmill, dumbbells, kettle, toaster, air fryer,
        frying pan, knife set, dinner plates, wine glasses, rug, mirror, wardrobe, bookshelf, pillow, duvet,
        mattress, towels, jeans, dress, t-shirt, sneakers, boots, sandals, handbag, wallet, sunglasses, ring,
        necklace, perfume, lipstick, drill, screwdriver set, paint, garden hose, lawn mower, flower pots, light
        bulbs, batteries, notebook, pens, backpack for school, toys, lego set, nappies, green tea, chocolate,
        coffee beans, gluten free snacks"""
    ),
    "single": _words(
        """laptop, laptops, phone, phones, tablet, tv, television, camera, cameras, headphone, speaker, speakers,
        charger, cable, printer, printers, monitor, keyboard, mouse, router, microphone, drone, console,
        battery, ssd, shoes, shoe, boots, sneakers, sandals, slippers, socks, jeans, trousers, shorts, skirt,
        dress, dresses, shirt, shirts, hoodie, jacket, coat, hat, gloves, scarf, belt, bag, bags, purse, wallet,
        watch, watches, ring, earrings, necklace, bracelet, jewellery, sunglasses, makeup, lipstick, mascara,
        perfume, shampoo, soap, lotion, sunscreen, vitamins, sofa, couch, chair, chairs, table, desk, bed,
        mattress, pillow, blanket, duvet, curtains, rug, rugs, lamp, lamps, mirror, shelf, dresser, wardrobe,
        cabinet, stool, bench, clock, vase, candle, candles, towels, kettle, toaster, blender, oven, fridge,
        dishwasher, vacuum, pan, pot, knives, plates, mugs, bowls, fan, heater, drill, hammer, paint, ladder,
        grill, tent, bicycle, bike, helmet, treadmill, dumbbell, skateboard, ball, toys, doll, puzzle, lego,
        games, guitar, piano, stroller, diapers, dog bed, cat toys, aquarium, seeds, planter, tile, faucet,
        sink, furniture, electronics, clothing, groceries, stationery, pens, tape, envelopes, glue, scissors,
        decor, wallpaper, cushions, ottoman, recliner, nike, adidas, sony, lenovo, canon, bosch, philips, ikea,
        logitech, panasonic, lg, puma, swatch, casio, seiko, vintage, rustic, modern, silver, velvet, bamboo,
        oak, leather, snacks, coffee, tea, honey, chocolate, protein"""
    ),
    "grocery": _words(
        """olive oil, sea salt, brown rice, basmati rice, rolled oats, canned tomatoes, tomato sauce, pasta,
        spaghetti, salmon fillets, smoked salmon, canned tuna, shrimp, lobster tails, ground beef, beef jerky, chicken
        breast, bacon, cheddar cheese, goat cheese, greek yogurt, almond milk, oat milk, coconut water, orange juice,
        sparkling water, iced tea, instant coffee, espresso pods, hot cocoa, maple syrup, peanut butter, strawberry
        jam, granola bars, breakfast cereal, trail mix, mixed nuts, cashews, dried mango, potato chips, popcorn,
        pretzels, crackers, cookies, brownies, chocolate chips, gummy bears, chewing gum, mints, flour, baking powder,
        vanilla extract, cinnamon, black pepper, chili flakes, soy sauce, hot sauce, ketchup, mustard, mayonnaise,
        vinegar, salad dressing, chicken soup, ramen noodles, rice crackers, frozen berries, pickles, olives,
        chickpeas, lentils, black beans, quinoa, flax seeds, stevia, brown sugar, gift basket, birthday cake"""
    ),
    "diet": _words(
        """organic, low sodium, gluten free, sugar free, vegan, kosher, keto friendly, non gmo, low carb, fat free,
        dairy free, high protein, wild, fresh, unsalted, family size, individually wrapped, bulk"""
    ),
    "everyday": _words(
        """toothbrush, toothpaste, mouthwash, dental floss, razor blades, shaving cream, deodorant, body wash, hand
        soap, hair dye, hair dryer, curling iron, nail polish, eyeliner, foundation, face mask, night cream, body
        butter, essential oil, hair oil, conditioner, cotton pads, bandages, thermometer, blood pressure monitor, knee
        brace, posture corrector, heating pad, foam roller, resistance bands, kettlebell, jump rope, swim goggles,
        bikini, leggings, sports bra, polo shirt, dress shirt, blazer, cardigan, sweatpants, pyjamas, underwear,
        tights, loafers, high heels, ankle boots, slippers, baseball cap, beanie, umbrella, suitcase, duffel bag, tote
        bag, night stand, coffee table, tv stand, bar stool, bunk bed, bed sheets, mattress topper, throw pillow, area
        rug, blackout curtains, picture frame, wall clock, string lights, floor lamp, ceiling fan, space heater,
        humidifier, air purifier, trash can, laundry basket, ironing board, iron, mop, dish soap, laundry detergent,
        paper towels, toilet paper, trash bags, storage bins, shoe rack, coat hanger, cutting board, baking tray,
        measuring cups, water bottle, lunch box, thermos, cake stand, rice cooker, slow cooker, waffle maker, juicer,
        coffee grinder, memory card, hard drive, hdmi cable, power bank, screen protector, phone holder, ring light,
        webcam, game controller, gaming chair, graphics card, projector, walkie talkie, remote control, extension
        cord, aa batteries, smoke detector, door lock, paint roller, sandpaper, tool box, tape measure, work gloves,
        car charger, car wax, wiper blades, motor oil, bike lock, fishing rod, camping stove, cooler box, bird feeder,
        fish tank, dog leash, cat tree, puppy pads, flea treatment, baby wipes, baby bottle, pacifier, high chair,
        crib, crayons, coloring set, building blocks, toy car, party balloons, gift wrap, greeting cards, wedding
        dress, costume"""
    ),
    "goal": _words(
        """lose belly fat, gain weight, get stronger arms, build bigger muscles, improve my stamina, run faster, sleep
        through the night, wake up fresh, look younger, get clear skin, stop my hair from falling out, grow a thicker
        beard, whiten my teeth, lower my cholesterol, keep my blood sugar down, improve my digestion, get rid of a
        cough, calm my nerves, focus better at work, quit snacking, recover after training, protect my joints,
        strengthen my bones, sit straight at my desk, sleep without neck pain, keep my feet warm, cool my bedroom,
        keep mosquitoes away, get rid of ants, remove stains from a carpet, keep my plants alive, stop my dog from
        barking, soothe my baby, organise my kitchen, get fit at home, train for a marathon, stay healthy in winter,
        be more active"""
    ),
    "wish": _words(
        """weight loss, weight gain, muscle growth, lean body, strong bones, healthy heart, glowing skin, dark
        circles, oily hair, split ends, cracked heels, bad breath, dry eyes, sore muscles, knee pain, neck pain,
        migraine, a cold, indigestion, bloating, stress relief, stamina, endurance, memory and focus, growing
        children, pregnancy, menopause, snoring, allergies, mosquito bites, sunburn, diabetes, high blood pressure,
        low iron, taller height, gym beginners"""
    ),
    "colour": _words(
        """black, white, red, navy blue, light grey, olive green, pink, beige, gold, silver, brown, turquoise,
        purple"""
    ),
    "person": _words(
        """women, men, kids, toddlers, a baby, my mother, my dad, teenagers, beginners, a 10 year old, seniors,
        dogs, small spaces, back pain, dry skin, travel, the garden, a small kitchen, winter, hiking, the
        office, running, sensitive skin"""
    ),
    "price": _words("20, 50, 100, 200, 30 dollars, 150 euros, 1000, 15 dollars"),
    "brand": _words(
        """samsung, sony, nike, adidas, lego, dell, hp, apple, philips, bosch, canon, lenovo, puma, casio,
        logitech, garmin, dyson, lg, asus, panasonic, asics, seiko"""
    ),
    "size": _words(
        """small, medium, large, xl, size 9, queen size, king size, 32 inch, 48 inch, 2 pack, 500 ml, 10 ft"""
    ),
    "place": _words(
        """germany, ireland, spain, canada, texas, leeds, oslo, my city, my area, my address, rural areas, the
        islands, my zip code, my postcode, 90210, 10115, alaska, brazil, new zealand, singapore"""
    ),
    "day": _words(
        """today, tomorrow, by friday, this week, next monday, before christmas, on sunday, this weekend, before 12"""
    ),
    "genre": _words(
        """horror, comedy, romantic, sci-fi, fantasy, crime, jazz, rock, classical, country, hip hop, animated,
        historical, thriller, indie, folk, action, drama, reggae, punk"""
    ),
    "topic": _words(
        """history, space, cooking, football, politics, true crime, mindfulness, business, science, parenting,
        music, gardening"""
    ),
    "sight": _words(
        """the amazon river, mount everest, the roman empire, blue whales, penicillin, the eiffel tower, honey
        bees, the moon, volcanoes, the french revolution, photosynthesis, world war 2, jupiter, the telephone,
        gravity, penguins, paris, japan"""
    ),
    "trade": _words(
        """plumber, dentist, lawyer, doctor, mechanic, hairdresser, bank, hospital, post office, gym, school, hotel"""
    ),
}
