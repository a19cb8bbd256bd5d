/** HTML from templates, which escape the values in them. */

/** Text that is HTML already. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** `undefined` is nothing, a list the sequence of its parts. */
type Value = Html | string | number | undefined | ReadonlyArray<Html>

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" }

const textOf = (value: Value): string => {
  if (value === undefined) return ""
  if (value instanceof Html) return value.text
  if (typeof value === "object") return value.map(textOf).join("")
  return String(value).replaceAll(/[&<>"]/g, (character) => entities[character] ?? "")
}

/** A template whose values are escaped unless they are HTML. */
export const html = (strings: TemplateStringsArray, ...values: ReadonlyArray<Value>): Html =>
  new Html(String.raw({ raw: strings }, ...values.map(textOf)))

/** Text in CommonMark, of which the reference uses only code spans. */
export const inline = (text: string): Html =>
  new Html(textOf(text).replaceAll(/`([^`]+)`/g, (_, code: string) => `<code>${code}</code>`))

/** Paragraphs in CommonMark. */
export const paragraphs = (text: string): ReadonlyArray<Html> =>
  text.split("\n\n").map((part) => html`<p>${inline(part)}</p>`)

/** Content that opens on demand. */
export const details = (title: string | Html, ...content: ReadonlyArray<Html>): Html =>
  html`<details><summary>${title}</summary>${content}</details>`
