"""What a person says in forty turns: the fixed script of the measurements that need real talk.

Written for this purpose: one evening of an imagined person, who tells things, asks, changes the subject and
comes back to it, in messages as long as people write them to a friend.
"""

from __future__ import annotations

MESSAGES = (
    "Hi! I am back from the market and my arms are falling off. I carried two pumpkins, a sack of potatoes "
    "and a jar of honey up four floors because the lift is broken again.",
    "The honey is for my aunt Rosa. She turns seventy on the 12th and she lives in Trieste, so I need to "
    "pack the jar well. Do you have an idea how to keep a glass jar safe in a parcel?",
    "Bubble wrap, yes. I was thinking of knitting a little woollen sleeve for it. I learned knitting last "
    "winter, and so far everything I make comes out as a tube anyway.",
    "Can I tell you about work? Our team lead is leaving in March and three people want the post. I am one "
    "of them, but I have not told anybody yet except you.",
    "I think I would be good at it. I like it when plans fit together and people get home on time. What "
    "scares me is telling a friend that their work is not good enough.",
    "The friend is called Milo. We started in the same week six years ago. He is brilliant, he just never "
    "finishes anything before the night it is due.",
    "Maybe I should talk with him before the interviews begin. Over coffee, not in the office. What would "
    "you say first, in my place?",
    "That is a kind way of putting it. By the way, my cat has decided that the empty pumpkin box is hers. "
    "She is called Biscuit, and she is looking at me as if I owed her rent.",
    "Biscuit is eleven. The vet says her kidneys are getting old, so she eats a special food that smells "
    "like a harbour in August. She loves it. I do not.",
    "What do you think I should cook with the first pumpkin? I have ginger, coconut milk, lentils and half "
    "a lemon, and I do not want to go down those stairs again today.",
    "Soup it is, then. How long do red lentils take if I put them in together with the pumpkin? The cubes "
    "are about as big as dice.",
    "While it cooks: I signed up for a choir! First rehearsal is on Thursday at seven, in the old school "
    "behind the station. I have not sung in front of people since I was twelve.",
    "They asked which voice I am and I had no idea, so I wrote alto because it sounded humble. How can I "
    "find out before Thursday without making a fool of myself?",
    "I just tried it in the kitchen and Biscuit left the room. I take that as a review. The neighbour "
    "knocked on the wall too, but it may have been applause.",
    "The neighbour is Mr. Okafor. He is a retired tram driver and knows every street of this town by its "
    "curve. Last summer he taught me to play draughts, and I still have not won once.",
    "The soup is good! A bit too much ginger, my nose is running. I put the rest in jars for tomorrow and "
    "for Mr. Okafor, who never cooks in the evening.",
    "He was so pleased. He says his daughter is coming from Lagos at the end of the month, with twins who "
    "are four, and he is worried about the stairs and about his English.",
    "His English is perfect, he is only shy about it. I offered to meet them at the airport with a friend's "
    "car, because five suitcases and a tram do not go well together.",
    "Which reminds me that I have to renew my driving licence. It runs out on the 30th. What do I need for "
    "that, usually? A photo, I suppose, and patience.",
    "I found the old photo. I look like someone who sells used boats. I will take a new one tomorrow, after "
    "the dentist, if my face works by then.",
    "Yes, the dentist is at half past nine. It is only a check, but I always sleep badly before. Do you know "
    "something that helps? And please do not say counting sheep.",
    "The breathing one I know from yoga. I stopped going because the teacher moved to Porto, and the new one "
    "talks about money all the time.",
    "Porto is lovely, though. I was there five years ago with my sister Ines. We got lost every single day "
    "and always ended up at the same bakery.",
    "Ines and I have not spoken much since our father's funeral. Nothing happened, really. We both waited "
    "for the other one to call, and then it had been too long.",
    "You are right, somebody has to be first. Her birthday is in May, but that feels far away. What could I "
    "write to her today, something small, that does not sound like a speech?",
    "I like that. I will send her the picture of the bakery. I still have it somewhere, with sugar on the "
    "lens. Give me a minute to look for it.",
    "Found it, and sent it. My heart is beating as if I had run up the stairs with the pumpkins again. Talk "
    "to me about something else, quickly!",
    "Fine, space then. Is it true that a day on Venus is longer than its year? Mr. Okafor said so once, and "
    "I did not believe him, because he had just beaten me at draughts.",
    "Imagine waiting a whole year for lunch. Biscuit would write letters to the government. Do cats have a "
    "sense of time, by the way? She knows six o'clock better than I do.",
    "That explains a lot. I think that I am a creature of habit as well. Every evening I make tea, water the "
    "fern, and then I forget the tea until it is cold.",
    "The fern was a present from Milo, now that I think of it. He said it cannot be killed. I took that as "
    "a challenge at first, but it is still alive after three years.",
    "Ines answered!! She wrote: same bakery, next spring? And a heart. I am sitting on the kitchen floor and "
    "I am a bit wet around the eyes.",
    "Of course I will say yes. Should I propose a date already, or is that too much at once? I could take a "
    "week off at the end of April, if I do not get the post.",
    "True, even a team lead has holidays. I wrote to her: yes, and this time we take a map. She sent back "
    "that a map would ruin everything.",
    "Let us go through tomorrow together. Dentist, photo, parcel for my aunt, and I promised to call the "
    "landlord about the lift. In which order would you do that?",
    "The post office closes at noon, I forgot to say. And the landlord only picks up in the afternoon, if "
    "at all. Does your order still hold?",
    "Good. I will put the knitted tube around the honey tonight. It has a hole where I lost count, but my "
    "aunt says that holes are where the love gets in.",
    "One more thing about Milo. If I get the post and he does not, I want to ask him to lead the part that "
    "he is best at. Do you think that would feel like pity?",
    "I will sleep on it. I am glad that I told somebody. It is past eleven and the tea is cold, as expected, "
    "and Biscuit has moved from the box to my pillow.",
    "Good night! Before I go: what were the three things that I must not forget tomorrow? I would like to "
    "see whether one of us was listening.",
)
