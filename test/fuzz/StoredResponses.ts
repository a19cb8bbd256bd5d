/** Requests about stored responses, tasks, files and batches with malformed ids and queries, the same for the same seed. */
import { randomFrom } from "../fixture/general/Random.ts"

const none = `resp_${"0".repeat(32)}`

/** Anything that a client can put for an id. */
const ids = [
  none,
  "resp_",
  "resp_*",
  ">",
  "*",
  ".",
  "%2e%2e",
  "%00",
  "%ff",
  "a%2Fb",
  "item",
  `file-${"0".repeat(32)}`,
  `batch_${"0".repeat(32)}`,
  `msgbatch_${"0".repeat(32)}`,
  "x.png",
  `${none}.0`,
  "a".repeat(8_000)
]

const values = [
  "",
  "0",
  "1",
  "-1",
  "1.5",
  "1e999",
  "NaN",
  "asc",
  "desc",
  "true",
  "null",
  "[]",
  "%00",
  "%ff",
  "a".repeat(4_000)
]
const names = [
  "limit",
  "order",
  "after",
  "purpose",
  "include",
  "include[]",
  "stream",
  "starting_after",
  "after_id",
  "before_id",
  "__proto__"
]

/** Routes and what follows the id; the kinds that are more often asked for come more often. */
const kinds = [
  ["/v1/tasks/", ["", "/content", "/events", "/events"]],
  ["/v1/files/", ["", "/content"]],
  ["/v1/batches/", [""]],
  ["/v1/messages/batches/", ["", "/results"]],
  ["/v1/responses/", ["", "", "/input_items"]],
  ["/v1/responses/", ["", "", "/input_items"]]
] as const

export interface PathRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** `count` requests, some about the response in the background of this id. */
export const pathRequests = (id: string, count: number, seed: number): ReadonlyArray<PathRequest> => {
  const random = randomFrom(seed)
  const pick = <A>(from: ReadonlyArray<A>): A => from[Math.floor(random() * from.length)]!
  return Array.from({ length: count }, () => {
    const query = Array.from({ length: Math.floor(random() * 4) }, () => `${pick(names)}=${pick(values)}`).join("&")
    const [routes, ends] = pick(kinds)
    const path = `${routes}${random() < 0.5 ? id : pick(ids)}${pick(ends)}`
    // the response stays until the last request
    const method = path.includes(id) ? "GET" : pick(["GET", "DELETE", "HEAD", "PUT"])
    const headers = random() < 0.5 ? { "last-event-id": pick(values), "range": `bytes=${pick(values)}` } : {}
    return { method, headers, path: query === "" ? path : `${path}?${query}` }
  })
}
