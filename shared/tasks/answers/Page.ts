/** The format of a page of an answer: one line of JSON about the page, followed by bytes of the answer. */
import { Option, Schema } from "effect"

const AnswerHead = Schema.Struct({
  status: Schema.Int,
  contentType: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String)
})
export type AnswerHead = typeof AnswerHead.Type

const About = Schema.Struct({
  /** Only in the first page. */
  head: Schema.optionalKey(AnswerHead),
  /** The number of the event with which the page begins; absent if it does not begin with a numbered event. */
  event: Schema.optionalKey(Schema.Natural)
})
export interface About extends Schema.Schema.Type<typeof About> {}

export interface Page extends About {
  readonly bytes: Uint8Array
}

const encodeAbout = Schema.encodeSync(Schema.fromJsonString(About))
const decodeAbout = Schema.decodeUnknownOption(Schema.fromJsonString(About))

const newline = 0x0a

export const encode = (about: About, bytes: Uint8Array): Uint8Array =>
  Buffer.concat([Buffer.from(`${encodeAbout(about)}\n`), bytes])

export const decode = (page: Uint8Array): Option.Option<Page> => {
  const end = page.indexOf(newline)
  return Option.map(
    decodeAbout(Buffer.from(page.subarray(0, end)).toString()),
    (about) => ({ ...about, bytes: page.subarray(end + 1) })
  )
}

export const isStream = ({ contentType }: AnswerHead): boolean => contentType.startsWith("text/event-stream")
