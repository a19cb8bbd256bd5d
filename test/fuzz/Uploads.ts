/** Malformed uploads to `/v1/files`, the same for the same seed. */
import { randomFrom } from "../fixture/general/Random.ts"

export interface Upload {
  readonly contentType: string
  readonly body: Buffer<ArrayBuffer>
}

const line = `{"custom_id":"1","method":"POST","url":"/v1/embeddings","body":{}}`
const contents = [
  line,
  `${line}\n${line}`,
  "",
  "\n",
  "[]",
  "{",
  "\u{feff}",
  "\r\n--x",
  "\r\n--x--",
  "[".repeat(500),
  "\0"
]
const names = ["file", "purpose", "", "expires_after", "__proto__", "a\"b", "é"]
const values = ["batch", "assistants", "", "\0", "a".repeat(5_000)]
const types = [
  "multipart/form-data; boundary=x",
  "multipart/form-data",
  "multipart/form-data; boundary=",
  "text/plain",
  "application/json"
]

/** The first upload is valid. */
export const uploads = (count: number, seed: number): ReadonlyArray<Upload> => {
  const random = randomFrom(seed)
  const pick = <A>(from: ReadonlyArray<A>): A => from[Math.floor(random() * from.length)]!
  const part = (name: string, value: string, file = "") =>
    `--x\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`
  const valid = part("file", line, "; filename=\"a\"") + part("purpose", "batch")
  const someParts = (): string => {
    const parts = Array.from(
      { length: Math.floor(random() * 4) },
      () => random() < 0.5 ? part(pick(names), pick(values)) : part(pick(names), pick(contents), "; filename=\"a\"")
    )
    return random() < 0.3 ? valid : parts.join("")
  }
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return { contentType: types[0]!, body: Buffer.from(`${valid}--x--\r\n`) }
    const body = Buffer.from(`${someParts()}${random() < 0.8 ? "--x--\r\n" : ""}`)
    for (let changes = Math.floor(random() * 3); changes > 0 && body.length > 0; changes--) {
      body[Math.floor(random() * body.length)] = Math.floor(random() * 256)
    }
    const length = random() < 0.2 ? Math.floor(random() * body.length) : body.length
    return { contentType: random() < 0.8 ? types[0]! : pick(types), body: body.subarray(0, length) }
  })
}
