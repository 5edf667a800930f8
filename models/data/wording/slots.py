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
