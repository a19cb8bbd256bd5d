/** The format of the record of a response: the response as its client got it, and the items of its request. */
import { Option, Schema } from "effect"

/** An earlier response of the same conversation. */
const Ancestor = Schema.Struct({
  id: Schema.String,
  /** Epoch milliseconds. */
  at: Schema.Finite
})
export type Ancestor = typeof Ancestor.Type

export interface ResponseRecord {
  readonly id: string
  /** When it was stored, in epoch milliseconds. */
  readonly at: number
  /** The responses whose input and output precede this one, oldest first. */
  readonly ancestors: ReadonlyArray<Ancestor>
  /** The request's own items, as JSON texts with commas between them. */
  readonly input: Uint8Array
  /** The items of the output, in the same form. */
  readonly output: Uint8Array
  /** The response without its output, as JSON. */
  readonly response: Uint8Array
}

/** The first line of a record. Contains the lengths of the texts that follow, in bytes. */
const Head = Schema.Struct({
  at: Schema.Finite,
  ancestors: Schema.Array(Ancestor),
  input: Schema.Int,
  output: Schema.Int
})
const encodeHead = Schema.encodeSync(Schema.fromJsonString(Head))
const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(Head))

const newline = 0x0a

export const encode = ({ ancestors, at, input, output, response }: ResponseRecord): Uint8Array => {
  const head = encodeHead({ at, ancestors, input: input.length, output: output.length })
  return Buffer.concat([Buffer.from(`${head}\n`), input, output, response])
}

/** Decodes a record; `None` for one in the format of a newer gateway. */
export const decode = (id: string, bytes: Uint8Array): Option.Option<ResponseRecord> => {
  const end = bytes.indexOf(newline)
  return Option.map(decodeHead(Buffer.from(bytes.subarray(0, end)).toString()), ({ ancestors, at, input, output }) => {
    const [first, second] = [end + 1 + input, end + 1 + input + output]
    return {
      id,
      at,
      ancestors,
      input: bytes.subarray(end + 1, first),
      output: bytes.subarray(first, second),
      response: bytes.subarray(second)
    }
  })
}
