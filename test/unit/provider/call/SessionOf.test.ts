/** Which requests belong to one session. */
import { assert, describe, it } from "@effect/vitest"
import { sessionOf } from "../../../../shared/provider/call/SessionOf.ts"

type Headers = Readonly<Record<string, string>>

const of = (body: object, headers?: Headers, tenant = "key", sticky: "session" | "user" = "session") =>
  sessionOf({ tenant, body: Buffer.from(JSON.stringify(body)), ...(headers === undefined ? {} : { headers }) }, sticky)

const user = (content: unknown) => ({ role: "user", content })
const said = (content: string) => ({ role: "assistant", content })

describe("the session of a request", () => {
  /** From the strongest to the weakest: the headers, and the fields of the body. */
  const marks: ReadonlyArray<readonly [string, Headers, object]> = [
    ["x-session-id", { "x-session-id": "1" }, {}],
    ["session_id", { session_id: "2" }, {}],
    ["x-claude-code-session-id", { "x-claude-code-session-id": "3" }, {}],
    ["prompt_cache_key", {}, { prompt_cache_key: "4" }],
    ["metadata.user_id", {}, { metadata: { user_id: "5" } }],
    ["previous_response_id", {}, { previous_response_id: "6" }],
    ["user", {}, { user: "7" }],
    ["the first message", {}, { messages: [user("8")] }]
  ]

  it.each(marks.map(([name], index) => [name, index] as const))("is that of %s before all weaker marks", (_, index) => {
    const all = (from: number) =>
      of(
        Object.assign({}, ...marks.slice(from).map(([, , body]) => body)) as object,
        Object.assign({}, ...marks.slice(from).map(([, headers]) => headers)) as Headers
      )
    const [, headers, body] = marks[index]!
    assert.strictEqual(all(index), of(body, headers))
    assert.notStrictEqual(all(index), all(index + 1))
  })

  const conversations: ReadonlyArray<readonly [string, first: object, later: object, other: object]> = [
    [
      "chat completions",
      { messages: [{ role: "system", content: "Be brief." }, user("Hello")] },
      { messages: [{ role: "system", content: "Be brief." }, user("Hello"), said("Hi"), user("Bye")] },
      { messages: [{ role: "system", content: "Be brief." }, user("Good day"), said("Hi"), user("Bye")] }
    ],
    [
      "messages whose marks for the cache move",
      {
        system: "Be brief.",
        messages: [user([{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }])]
      },
      { messages: [user("Hello"), said("Hi"), user("Bye")], system: [{ type: "text", text: "Be brief." }] },
      { system: "Be long.", messages: [user("Hello")] }
    ],
    [
      "Gemini",
      { systemInstruction: { parts: [{ text: "Be brief." }] }, contents: [{ parts: [{ text: "Hello" }] }] },
      {
        system_instruction: { parts: [{ text: "Be brief." }] },
        contents: [{ role: "user", parts: [{ text: "Hello" }] }, { role: "model", parts: [{ text: "Hi" }] }]
      },
      { contents: [{ parts: [{ text: "Hello" }] }] }
    ],
    [
      "a first message longer than is parsed",
      { messages: [user("Hello ".repeat(20_000))] },
      { messages: [user("Hello ".repeat(20_000)), said("Hi"), user("Bye")] },
      { messages: [user("Good day ".repeat(20_000))] }
    ]
  ]

  it.each(conversations)("is the same in all turns of a conversation: %s", (_, first, later, other) => {
    assert.isString(of(first))
    assert.strictEqual(of(later), of(first))
    assert.notStrictEqual(of(other), of(first))
  })

  it("is another one for another tenant", () => {
    assert.notStrictEqual(of({ user: "1" }, {}, "other"), of({ user: "1" }))
  })

  it("is unknown without any text", () => {
    for (const body of [{}, { messages: [] }, { messages: [user([{ type: "image" }])] }, { prompt: "Once" }, []]) {
      assert.isUndefined(of(body))
    }
  })

  it("may be that of its user only", () => {
    const named = of({ user: "1" }, {}, "key", "user")
    assert.strictEqual(of({ user: "1", prompt_cache_key: "2" }, { "x-session-id": "3" }, "key", "user"), named)
    assert.isUndefined(of({ messages: [user("Hello")] }, { "x-session-id": "3" }, "key", "user"))
  })
})
