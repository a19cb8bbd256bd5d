/** Strings of the formats that JSON Schema names: one from the text where it has one, else an example. */
import type { Facts } from "./Facts.ts"

interface Format {
  /** How it looks in a text, strictly. */
  readonly pattern?: RegExp
  /** A valid one for each number. */
  readonly example: (index: number) => string
}

const two = (number: number): string => String(number).padStart(2, "0")
const day = (index: number): string => `2000-01-${two(1 + index % 28)}`
const time = (index: number): string => `${two(index % 24)}:00:00Z`
const hex = (index: number, digits: number): string => index.toString(16).padStart(digits, "0").slice(-digits)

const date = String.raw`\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])`
const clock = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
const email: Format = {
  pattern: /(?<![\w.+-])[A-Za-z0-9]\w{0,40}(?:[.+-]\w{1,40}){0,4}@(?:[A-Za-z0-9]{1,40}[.-]){1,4}[A-Za-z]{2,20}\b/u,
  example: (index) => `user${index === 0 ? "" : index}@example.com`
}
const uri: Format = {
  pattern: /\bhttps?:\/\/(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,20}(?:\/[A-Za-z0-9/_~.-]{0,200}[A-Za-z0-9/])?/u,
  example: (index) => `https://example.com/${index === 0 ? "" : index}`
}
const hostname: Format = { example: (index) => index === 0 ? "example.com" : `host${index}.example.com` }

const formats: ReadonlyMap<string, Format> = new Map([
  ["date", { pattern: new RegExp(`\\b${date}\\b`, "u"), example: day }],
  ["time", { pattern: new RegExp(`\\b${clock}`, "u"), example: time }],
  ["date-time", { pattern: new RegExp(`\\b${date}T${clock}`, "u"), example: (index) => `${day(index)}T00:00:00Z` }],
  ["duration", { example: (index) => `PT${index + 1}H` }],
  ["email", email],
  ["idn-email", email],
  ["hostname", hostname],
  ["idn-hostname", hostname],
  ["ipv4", { example: (index) => `192.0.2.${index % 256}` }],
  ["ipv6", { example: (index) => `2001:db8::${hex(index + 1, 1)}` }],
  ["uri", uri],
  ["iri", uri],
  ["url", uri],
  ["uri-reference", uri],
  ["iri-reference", uri],
  ["uri-template", uri],
  [
    "uuid",
    {
      pattern: /\b[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/iu,
      example: (index) => `00000000-0000-4000-8000-${hex(index, 12)}`
    }
  ],
  ["json-pointer", { example: (index) => `/${index}` }],
  ["relative-json-pointer", { example: (index) => `${index}` }],
  ["regex", { example: (index) => `^.{${index}}` }],
  ["byte", { example: (index) => ["dGV4dA==", "bW9yZQ=="][index % 2] as string }]
])

/** `undefined` for a format that this engine does not know. `index` makes the examples differ. */
export const stringOfFormat = (name: string, facts: Facts, index: number): string | undefined => {
  const format = formats.get(name)
  if (format === undefined) return undefined
  const found = index === 0 && format.pattern !== undefined ? facts.match(format.pattern) : undefined
  return found ?? format.example(index)
}
