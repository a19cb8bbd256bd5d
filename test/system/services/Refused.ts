/** Checks of a rejection as a client of OpenAI's dialect sees it. */
import { assert } from "@effect/vitest"
import type { RawAnswer } from "../../fixture/client/RawHttp.ts"

interface Expected {
  readonly status?: number
  readonly code?: string
  readonly param?: string | null
}

/** Asserts an error of the usual form, with the request's id under both names. */
export const assertRefused = ({ body, headers, status }: RawAnswer, expected: Expected = {}) => {
  const what = `${status}: ${body.slice(0, 500)}`
  assert.isTrue(status >= 400 && status < 500, what)
  assert.match(headers["x-request-id"] ?? "", /^req_[0-9a-f-]{36}$/, what)
  assert.strictEqual(headers["request-id"], headers["x-request-id"])
  assert.match(headers["content-type"] ?? "", /^application\/json/, what)
  const { error } = JSON.parse(body) as { readonly error: Record<string, unknown> }
  assert.hasAllKeys(error, ["message", "type", "param", "code"])
  assert.isNotEmpty(error["message"])
  assert.isNotEmpty(error["type"])
  const { code = error["code"], param = error["param"] } = expected
  assert.deepStrictEqual({ status, code: error["code"], param: error["param"] }, {
    status: expected.status ?? status,
    code,
    param
  }, what)
}
