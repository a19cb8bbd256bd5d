/**
 * The load generator for machines without wrk: each connection repeats its request as soon as the answer is complete. Its
 * arguments are a URL, connections and seconds; LOAD_HEADERS has the stack's own headers, LOAD_FILE the requests. Prints the
 * same line as load.lua. It uses more CPU than wrk, so compare its figures only with its own.
 */
import { readFileSync } from "node:fs"
import { Pool } from "undici"

const [url, connections, seconds] = process.argv.slice(2)
const target = new URL(url!)
const pool = new Pool(target.origin, { connections: Number(connections), pipelining: 1 })
const common: Record<string, string> = JSON.parse(process.env["LOAD_HEADERS"] ?? "{}")
const requests = readFileSync(process.env["LOAD_FILE"] ?? "", "utf8").trim().split("\n").map((line) => {
  const [key = "", body = ""] = line.split("\t")
  return { headers: { ...common, "content-type": "application/json", authorization: `Bearer ${key}` }, body }
})
let last = 0

const startedAt = performance.now()
const endsAt = startedAt + Number(seconds) * 1_000
const latencies: Array<number> = []
let failures = 0

const post = () =>
  new Promise<void>((resolve) => {
    const sentAt = performance.now()
    let status = 0
    pool.dispatch({ method: "POST", path: target.pathname, ...requests[last++ % requests.length] }, {
      onRequestStart: () => {},
      onResponseStart: (_controller, code) => {
        status = code
      },
      onResponseData: () => {},
      onResponseEnd: () => {
        latencies.push(performance.now() - sentAt)
        if (status !== 200) failures++
        resolve()
      },
      onResponseError: () => {
        failures++
        resolve()
      }
    })
  })

await Promise.all(Array.from({ length: Number(connections) }, async () => {
  while (performance.now() < endsAt) await post()
}))

latencies.sort((left, right) => left - right)
const percentile = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? 0
console.log(JSON.stringify({
  answers: latencies.length,
  failures,
  seconds: (performance.now() - startedAt) / 1_000,
  p50Millis: percentile(0.5),
  p99Millis: percentile(0.99)
}))
await pool.close()
