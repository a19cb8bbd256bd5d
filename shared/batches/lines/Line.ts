/** The formats of a line of a batch: its id, its job in the queue, its result in the log, and its line in the file of results. */
import { Option, Schema } from "effect"
import type { Owner } from "../../contract/Owner.ts"

/** The place of a line. Lines are numbered from 0. */
export interface LinePlace {
  readonly owner: Owner
  readonly batch: string
  readonly line: number
}

/** The id of a line's job, and of its usage event. */
export const lineId = ({ batch, line }: Pick<LinePlace, "batch" | "line">): string => `${batch}-${line}`

const pattern = /^(batch_[0-9a-f]{32})-(\d{1,6})$/

export const isLineId = (id: string): boolean => pattern.test(id)

export const placeOf = (id: string, owner: Owner | undefined): LinePlace | undefined => {
  const [, batch, line] = pattern.exec(id) ?? []
  return batch === undefined || owner === undefined ? undefined : { owner, batch, line: Number(line) }
}

/** The data about a request with which a line's job begins; the body follows. */
const JobAbout = Schema.Struct({
  customId: Schema.String,
  /** How many tokens the request is expected to use. */
  tokens: Schema.Finite,
  /** The number of pages that hold the body, if it is too large for the job. */
  pages: Schema.optionalKey(Schema.Int)
})
export type JobAbout = typeof JobAbout.Type

/** The data about a line's result with which its log entry begins; the last part of the answer follows. */
const ResultAbout = Schema.Struct({
  customId: Schema.String,
  /** The status of the answer. */
  status: Schema.optionalKey(Schema.Int),
  /** Why there is no answer. */
  error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String }))
})
export type ResultAbout = typeof ResultAbout.Type

const newline = 0x0a

/** Encodes and decodes one line of JSON followed by bytes. */
const framed = <A>(schema: Schema.Codec<A, unknown>) => {
  const codec = Schema.fromJsonString(schema)
  const encodeAbout = Schema.encodeSync(codec)
  const decodeAbout = Schema.decodeUnknownOption(codec)
  return {
    encode: (about: A, bytes: Uint8Array): Uint8Array => Buffer.concat([Buffer.from(`${encodeAbout(about)}\n`), bytes]),
    decode: (whole: Uint8Array): Option.Option<{ readonly about: A; readonly bytes: Uint8Array }> => {
      const end = whole.indexOf(newline)
      return Option.map(
        decodeAbout(Buffer.from(whole.subarray(0, end)).toString()),
        (about) => ({ about, bytes: whole.subarray(end + 1) })
      )
    }
  }
}

export const job = framed(JobAbout)
export const result = framed(ResultAbout)

/** Puts JSON on one line. A line break in JSON is only ever between tokens, where it may be a space. */
export const onOneLine = (json: Uint8Array): Uint8Array => {
  if (!json.includes(0x0a) && !json.includes(0x0d)) return json
  return Uint8Array.from(json, (byte) => byte === 0x0a || byte === 0x0d ? 0x20 : byte)
}

/** The line of a result in the file of results, as the parts before and after the answer. */
export const outputOf = (
  place: Pick<LinePlace, "batch" | "line">,
  { customId, error, status }: ResultAbout
): readonly [head: string, tail: string] => {
  const id = `batch_req_${lineId(place).slice("batch_".length)}`
  const start = `{"id":"${id}","custom_id":${JSON.stringify(customId)}`
  return status === undefined
    ? [`${start},"response":null,"error":${JSON.stringify(error ?? null)}}`, "\n"]
    : [`${start},"response":{"status_code":${status},"request_id":"${id}","body":`, `},"error":null}\n`]
}
