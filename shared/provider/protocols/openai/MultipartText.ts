/**
 * Reads the text fields of a form, and edits one of them without changing any other byte.
 *
 * Ingress has validated the body as `multipart/form-data`; here only the positions of its parts are needed.
 */
import { boundaryOf } from "../../../bounds/Form.ts"

const crlf = "\r\n"
const hyphen = 0x2d

const dispositionIn = (headers: string): Pick<Field, "isFile" | "name"> => {
  const disposition = headers.split(crlf).find((line) => /^content-disposition:/i.test(line)) ?? ""
  const [, quoted, plain] = /;\s*name=(?:"([^"]*)"|([^\s;]+))/i.exec(disposition) ?? []
  return { name: quoted ?? plain, isFile: /;\s*filename\*?=/i.test(disposition) }
}

interface Field {
  readonly name: string | undefined
  readonly isFile: boolean
  /** The range of the value, in bytes. */
  readonly start: number
  readonly end: number
}

const fieldsOf = (body: Buffer, boundary: string): ReadonlyArray<Field> => {
  const fields: Array<Field> = []
  const delimiter = Buffer.from(`${crlf}--${boundary}`)
  // a preamble may precede the first delimiter, which has no line break if the body begins with it
  const first = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)) ? -2 : body.indexOf(delimiter)
  if (first === -1) return fields
  let at = first + delimiter.length
  // two hyphens follow the last delimiter
  while (body[at] !== hyphen || body[at + 1] !== hyphen) {
    const next = body.indexOf(delimiter, at)
    if (next === -1) return fields
    // headers begin after the delimiter's line; the line break of the next delimiter may end them
    const part = body.subarray(at, next + 4)
    const line = part.indexOf(crlf)
    const blank = part.indexOf(`${crlf}${crlf}`, line)
    if (line !== -1 && blank !== -1 && at + blank < next) {
      const start = at + blank + 4
      const headers = part.toString("latin1", line + 2, blank)
      fields.push({ ...dispositionIn(headers), start, end: Math.max(start, next) })
    }
    at = next + delimiter.length
  }
  return fields
}

const bufferOf = (body: Uint8Array): Buffer => Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** The names of a form's text fields. */
export const names = (body: Uint8Array, contentType: string): ReadonlyArray<string> => namesOf(body, contentType, false)

/** The names of a form's files. */
export const fileNames = (body: Uint8Array, contentType: string): ReadonlyArray<string> =>
  namesOf(body, contentType, true)

const namesOf = (body: Uint8Array, contentType: string, ofFiles: boolean): ReadonlyArray<string> => {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return []
  return fieldsOf(bufferOf(body), boundary).flatMap(({ isFile, name }) => isFile === ofFiles ? name ?? [] : [])
}

const hasText = (name: string) => (field: Field): boolean => !field.isFile && field.name === name

/** The value of a text field; `undefined` if there is none. If several have the name, the last one counts. */
export const valueOf = (body: Uint8Array, contentType: string, name: string): string | undefined => {
  const boundary = boundaryOf(contentType)
  const bytes = bufferOf(body)
  const field = boundary === undefined ? undefined : fieldsOf(bytes, boundary).findLast(hasText(name))
  return field && bytes.toString("utf8", field.start, field.end)
}

/** Replaces the value of every field with this name; `undefined` if there is none. */
export const setField = (
  body: Uint8Array,
  contentType: string,
  name: string,
  value: string
): Uint8Array | undefined => {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return undefined
  const bytes = bufferOf(body)
  const fields = fieldsOf(bytes, boundary).filter(hasText(name))
  if (fields.length === 0) return undefined
  const pieces: Array<Uint8Array> = []
  let copied = 0
  for (const { end, start } of fields) {
    pieces.push(bytes.subarray(copied, start), Buffer.from(value))
    copied = end
  }
  pieces.push(bytes.subarray(copied))
  return Buffer.concat(pieces)
}
