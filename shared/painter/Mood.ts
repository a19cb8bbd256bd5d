/** The hour, the season and the colours of a picture, from the words of its prompt. */
import { type Chance, pick } from "./Chance.ts"
import { type Colour, fromHue, mix, named } from "./Colour.ts"
import { holdsAny, type Words } from "./Words.ts"

export type Hour = "day" | "dawn" | "sunset" | "night" | "storm"
type Season = "summer" | "spring" | "autumn" | "winter"

export interface Mood {
  readonly hour: Hour
  readonly season: Season
  /** Whether a word of the prompt has set the hour or the season. */
  readonly isNamed: boolean
  readonly hasColours: boolean
  /** From the zenith to the horizon. */
  readonly sky: readonly [Colour, Colour, ...Array<Colour>]
  /** Of sun or moon. */
  readonly light: Colour
  /** Of what is far away, and of what is near. */
  readonly far: Colour
  readonly near: Colour
  /** Of water at the horizon, and at the feet of the viewer. */
  readonly water: readonly [Colour, Colour]
  readonly sand: Colour
  readonly foliage: readonly [Colour, ...Array<Colour>]
  /** Of flowers, flags, balloons. */
  readonly accents: readonly [Colour, ...Array<Colour>]
}

type Palette = Pick<Mood, "sky" | "light" | "far" | "near" | "water">

const palettes: Record<Hour, readonly [Palette, ...Array<Palette>]> = {
  day: [
    {
      sky: ["#2f7fc8", "#6db3e6", "#bfe3f5", "#f4f1de"],
      light: "#fff3c4",
      far: "#9db8cf",
      near: "#3c6e57",
      water: ["#7fbcd3", "#1d5f86"]
    },
    {
      sky: ["#3566ad", "#7fb2de", "#cfe6ee", "#fdf3e1"],
      light: "#fff6d6",
      far: "#a8b6cc",
      near: "#48705a",
      water: ["#86c5cf", "#1f6a7d"]
    },
    {
      sky: ["#1f8a9e", "#5fc0c0", "#bfe8d8", "#fbf2d5"],
      light: "#fff1b3",
      far: "#8fbdb9",
      near: "#356b5c",
      water: ["#79cdbf", "#14606f"]
    }
  ],
  dawn: [
    {
      sky: ["#4a6fa5", "#93a9d1", "#e8c3c8", "#fbe3c0"],
      light: "#fff0cf",
      far: "#a99bbd",
      near: "#4a5a72",
      water: ["#dcb9bd", "#4d6a93"]
    },
    {
      sky: ["#5c5f9e", "#b08fc0", "#f3b6a5", "#fde2b0"],
      light: "#fff3d0",
      far: "#b190b0",
      near: "#4c4a6b",
      water: ["#e8b3a3", "#56548c"]
    }
  ],
  sunset: [
    {
      sky: ["#2b1b4b", "#7a2f6b", "#d9535f", "#f9a65a", "#ffe0a3"],
      light: "#fff0b8",
      far: "#8d4a6b",
      near: "#2a1633",
      water: ["#f0995f", "#3b1f4d"]
    },
    {
      sky: ["#1e2a52", "#6a4c85", "#e07a7a", "#f7b977", "#fde7b4"],
      light: "#fff4c9",
      far: "#8a6288",
      near: "#262340",
      water: ["#eda57b", "#2c2f58"]
    },
    {
      sky: ["#3d1f3d", "#a8324a", "#ee6a3c", "#f9b84a", "#fdeaa0"],
      light: "#fff6c2",
      far: "#9c4a45",
      near: "#2e1422",
      water: ["#f3a24c", "#4a1d33"]
    }
  ],
  night: [
    {
      sky: ["#050a1f", "#0d1b3e", "#1d3461", "#33507f"],
      light: "#f4f1de",
      far: "#263862",
      near: "#080e1e",
      water: ["#2a426f", "#060d1f"]
    },
    {
      sky: ["#0a0618", "#1c1440", "#38265f", "#5a3f7d"],
      light: "#f7eedd",
      far: "#3a2c60",
      near: "#0c0818",
      water: ["#463568", "#0c081c"]
    },
    {
      sky: ["#031318", "#07303a", "#12535a", "#2f7a78"],
      light: "#eefbe8",
      far: "#17494f",
      near: "#04161a",
      water: ["#25686a", "#03151a"]
    }
  ],
  storm: [
    {
      sky: ["#1d2733", "#3b4a5a", "#6d7c88", "#a4acab"],
      light: "#e8eef0",
      far: "#70808b",
      near: "#27343a",
      water: ["#8b989c", "#25343d"]
    },
    {
      sky: ["#241f33", "#47425c", "#7a7688", "#b3adb0"],
      light: "#efe9ef",
      far: "#7d7a8c",
      near: "#2c2a3a",
      water: ["#97939f", "#2b2a3c"]
    }
  ]
}

const hours: ReadonlyArray<readonly [Hour, ReadonlyArray<string>]> = [
  ["storm", [
    "storm",
    "stormy",
    "thunder",
    "thunderstorm",
    "lightning",
    "rain",
    "rainy",
    "raining",
    "gloomy",
    "暴风",
    "雨"
  ]],
  ["sunset", ["sunset", "dusk", "evening", "twilight", "日落", "黄昏", "夕阳"]],
  ["dawn", ["dawn", "sunrise", "morning", "日出", "清晨", "黎明"]],
  [
    "night",
    [
      "night",
      "midnight",
      "nighttime",
      "nocturnal",
      "starry",
      "moon",
      "moonlit",
      "moonlight",
      "star",
      "galaxy",
      "aurora"
    ]
      .concat(["northern", "夜", "月", "星", "极光"])
  ],
  ["day", ["day", "noon", "midday", "daylight", "sunny", "bright", "sun", "阳光", "白天"]]
]

const seasons: ReadonlyArray<readonly [Season, ReadonlyArray<string>]> = [
  ["winter", ["winter", "snow", "snowy", "snowfall", "ice", "icy", "frozen", "arctic", "christmas", "冬", "雪"]],
  ["autumn", ["autumn", "fall", "october", "harvest", "秋"]],
  ["spring", ["spring", "blossom", "cherry", "april", "春", "樱"]],
  ["summer", ["summer", "july", "tropical", "夏"]]
]

const foliage: Record<Season, readonly [Colour, ...Array<Colour>]> = {
  summer: ["#2f6b45", "#4f8f4a", "#7ea653", "#2b5a3e"],
  spring: ["#6fae57", "#93c26a", "#f2a7bd", "#4f9355"],
  autumn: ["#b5502b", "#d98a2b", "#8f3b2a", "#c9a13b"],
  winter: ["#5d7480", "#46606b", "#7f949c", "#39525c"]
}

const first = <A>(words: Words, among: ReadonlyArray<readonly [A, ReadonlyArray<string>]>): A | undefined =>
  among.find(([, names]) => holdsAny(words.wanted, names))?.[0]

/** Colours that the prompt names, in the order in which the table has them. */
const coloursIn = (words: ReadonlySet<string>): ReadonlyArray<Colour> =>
  [...named].flatMap(([name, colour]) => words.has(name) ? [colour] : [])

/** How much of a colour that the prompt names gets into every other one. */
const tint = 0.38

export const moodOf = (words: Words, chance: Chance): Mood => {
  const namedHour = first(words, hours)
  const namedSeason = first(words, seasons)
  const colours = coloursIn(words.wanted)
  const hour = namedHour ?? pick(chance, ["day", "day", "dawn", "sunset"])
  const season = namedSeason ?? "summer"
  const palette = pick(chance, palettes[hour])
  const unwanted = coloursIn(words.unwanted)
  const [main, second = main] = colours
  const toned = (colour: Colour, towards = main): Colour => towards === undefined ? colour : mix(colour, towards, tint)
  const hue = chance() * 360
  const accents = (colours.length > 0 ? colours : [
    fromHue(hue, 0.72, 0.58),
    fromHue(hue + 40, 0.75, 0.6),
    fromHue(hue + 180, 0.6, 0.56),
    "#f7f3e8"
  ]).filter((colour) => !unwanted.includes(colour))
  const [zenith, upper, ...lower] = palette.sky
  const dim = hour === "night" ? 0.72 : hour === "storm" ? 0.4 : hour === "sunset" ? 0.5 : 0
  const shaded = (colour: Colour): Colour => mix(toned(colour, second), palette.near, dim)
  const [leaf, ...leaves] = foliage[season]
  return {
    hour,
    season,
    isNamed: namedHour !== undefined || namedSeason !== undefined,
    hasColours: colours.length > 0,
    sky: [toned(zenith), toned(upper), ...lower.map((colour) => toned(colour, second))],
    light: palette.light,
    far: toned(palette.far),
    near: toned(palette.near, second),
    water: [toned(palette.water[0]), toned(palette.water[1])],
    sand: mix("#e3c48f", palette.near, dim * 0.8),
    foliage: [shaded(leaf), ...leaves.map(shaded)],
    accents: [accents[0] ?? "#e8e2d0", ...accents.slice(1)]
  }
}
