/** The playground's answer so far, read from responses in any dialect. */
import { Option, Schema } from "effect"

export interface Answer {
  readonly text: string
  /** URLs that the page can show. */
  readonly pictures: ReadonlyArray<string>
  readonly sound: { readonly url: string; readonly type: string } | undefined
  readonly video: string | undefined
  readonly vectors: ReadonlyArray<ReadonlyArray<number>>
  readonly ranking: ReadonlyArray<{ readonly score: number; readonly text: string }>
  /** Progress of a running task, in percent. */
  readonly progress: number | undefined
  /** The response or its events as JSON. */
  readonly raw: string
}

export const emptyAnswer: Answer = {
  text: "",
  pictures: [],
  sound: undefined,
  video: undefined,
  vectors: [],
  ranking: [],
  progress: undefined,
  raw: ""
}

const optional = Schema.optionalKey
const Text = Schema.Struct({ text: optional(Schema.String) })

/** Everything that can contain output, in a response of any dialect or in one event of its stream. */
const Output = Schema.Struct({
  choices: optional(Schema.Array(Schema.Struct({
    text: optional(Schema.String),
    message: optional(Schema.Struct({ content: optional(Schema.NullOr(Schema.String)) })),
    delta: optional(Schema.Struct({ content: optional(Schema.NullOr(Schema.String)) }))
  }))),
  content: optional(Schema.Array(Text)),
  delta: optional(Text),
  output: optional(Schema.Array(Schema.Struct({ content: optional(Schema.Array(Text)) }))),
  candidates: optional(Schema.Array(Schema.Struct({
    content: optional(Schema.Struct({
      parts: optional(Schema.Array(Schema.Struct({
        text: optional(Schema.String),
        inlineData: optional(Schema.Struct({ mimeType: Schema.String, data: Schema.String }))
      })))
    }))
  }))),
  data: optional(Schema.Array(Schema.Struct({
    b64_json: optional(Schema.String),
    embedding: optional(Schema.Array(Schema.Finite))
  }))),
  results: optional(Schema.Array(Schema.Struct({ relevance_score: Schema.Finite, document: optional(Text) })))
})

const decode = Schema.decodeUnknownOption(Output)

/** The media type, from the first bytes of a base64 image. */
const typeOf = (base64: string): string =>
  base64.startsWith("/9j/") ? "image/jpeg" : base64.startsWith("UklG") ? "image/webp" : "image/png"

const dataUrl = (type: string, base64: string): string => `data:${type};base64,${base64}`

/** Reads a response of any dialect, or one event of its stream. */
export const read = (value: unknown): Pick<Answer, "text" | "pictures" | "vectors" | "ranking"> => {
  const { candidates = [], choices = [], content = [], data = [], delta, output = [], results = [] } = Option.getOrElse(
    decode(value),
    (): typeof Output.Type => ({})
  )
  const parts = candidates.flatMap((candidate) => candidate.content?.parts ?? [])
  return {
    text: [
      ...choices.map((choice) => choice.delta?.content ?? choice.message?.content ?? choice.text ?? ""),
      ...content.map(({ text = "" }) => text),
      delta?.text ?? "",
      ...output.flatMap(({ content = [] }) => content.map(({ text = "" }) => text)),
      ...parts.map(({ text = "" }) => text)
    ].join(""),
    pictures: [
      ...parts.flatMap(({ inlineData }) =>
        inlineData === undefined || !/^image\/(?:png|jpeg|webp)$/.test(inlineData.mimeType)
          ? []
          : [dataUrl(inlineData.mimeType, inlineData.data)]
      ),
      ...data.flatMap(({ b64_json }) => b64_json === undefined ? [] : [dataUrl(typeOf(b64_json), b64_json)])
    ],
    vectors: data.flatMap(({ embedding }) => embedding === undefined ? [] : [embedding]),
    ranking: results.map(({ document, relevance_score }) => ({ score: relevance_score, text: document?.text ?? "" }))
  }
}

/** Formats JSON. Truncates long strings, such as images. */
export const pretty = (value: unknown): string =>
  JSON.stringify(
    value,
    (_, inner: unknown) =>
      typeof inner === "string" && inner.length > 2_000
        ? `${inner.slice(0, 120)}… (${inner.length} characters)`
        : inner,
    2
  )
