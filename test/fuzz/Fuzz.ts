/**
 * Requests for every operation that were spoilt in many ways, or hold very many of something: each is served or refused with
 * a clear error, within a time, and the same processes serve afterwards.
 */
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { mutations } from "../fixture/client/Mutations.ts"
import { type SampleRequest, sampleRequests } from "../fixture/client/Requests.ts"
import { type Shape, shapes } from "../fixture/Shapes.ts"

export interface FuzzOptions {
  readonly seed: number
  /** For all operations together. */
  readonly requests: number
  readonly clients: number
  /** The time within which a body of 2 MB is answered or rejected, in milliseconds. */
  readonly answeredWithinMs: number
  /** Sends every n-th shape of such bodies. */
  readonly shapeStep: number
  readonly log: (line: string) => void
}

/** A request that was answered as none may be, or not at all. */
export interface Finding {
  readonly operation: string
  readonly body: string
  readonly answer: string
}

export interface FuzzReport {
  /** How often there was which status, by operation. */
  readonly statuses: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly findings: ReadonlyArray<Finding>
  /** The answers to large bodies that took longest, the slowest first. */
  readonly slowest: ReadonlyArray<Timed>
  /** Processes that have ended, and mistakes of ours in their logs. */
  readonly broken: ReadonlyArray<string>
}

/** A large body, and how long its answer took. */
export interface Timed {
  readonly operation: string
  readonly shape: string
  readonly bytes: number
  readonly status: Answered["status"]
  readonly milliseconds: number
}

/** The size of a large body. */
const largeBytes = 2_000_000

/** As much of the shape as comes to a large body. */
const largeBody = (shape: Shape): Buffer => {
  const some = 2_000
  const perElement = Buffer.byteLength(JSON.stringify(shape.body(some))) / some
  return Buffer.from(JSON.stringify(shape.body(Math.floor(largeBytes / perElement))))
}

/** What the services need for it: a request that waits for its turn among so many does not hang. */
export const environment = { GATEWAY_QUEUE_TIMEOUT_MS: "60000" }
export const services = ["images", "video", "embeddings", "rerank", "speech"]

/** Longer than any of these requests may take on a busy machine, in milliseconds. */
const patienceMs = 90_000

/** Engines that draw take seconds for what others answer in a millisecond, so they get fewer requests. */
const shareOf = ({ operation }: SampleRequest): number => /^(?:images|video|audio)\./.test(operation) ? 0.2 : 1

const mistake = /"level":"(?:ERROR|FATAL)".*/

export const fuzz = async (gateway: Gateway, options: FuzzOptions): Promise<FuzzReport> => {
  const { answeredWithinMs, clients, log, requests, seed, shapeStep } = options
  const shares = sampleRequests.reduce((sum, sample) => sum + shareOf(sample), 0)
  const statuses: Record<string, Record<string, number>> = {}
  const findings: Array<Finding> = []

  const send = async (sample: SampleRequest, body: Buffer, own: Record<string, number>) => {
    const { headers, operation, path } = sample
    const answer = await answered(gateway, path, headers, body)
    own[answer.status] = (own[answer.status] ?? 0) + 1
    const problem = problemOf(answer)
    if (problem !== undefined) {
      findings.push({ operation, body: body.toString("latin1").slice(0, 500), answer: problem })
    }
    const task = /"task_id":"(\w+)"/.exec(answer.text)?.[1]
    // nobody is going to look at it
    if (task !== undefined) await cancelled(gateway, `${path}/${task}`)
  }

  for (const [index, sample] of sampleRequests.entries()) {
    const own: Record<string, number> = {}
    statuses[sample.operation] = own
    const spoilt = mutations(sample.body, Math.ceil(requests * shareOf(sample) / shares), seed + index)
    // and one that is not, to which the others are close
    const next = [Buffer.from(JSON.stringify(sample.body)), ...spoilt].values()
    await Promise.all(Array.from({ length: clients }, async () => {
      for (const body of next) await send(sample, body, own)
    }))
    if (own["200"] === undefined) {
      findings.push({ operation: sample.operation, body: JSON.stringify(sample.body), answer: "never served" })
    }
    log(`${sample.operation.padEnd(24)} ${JSON.stringify(own)}`)
  }
  // one after the other, so that each is timed by itself; the best of three, since the machine may be busy with something else
  const timed: Array<Timed> = []
  for (const shape of shapes.filter((_, index) => index % shapeStep === 0)) {
    const { name, sample: { headers, operation, path } } = shape
    const body = largeBody(shape)
    const tries: Array<Timed> = []
    do {
      const begun = performance.now()
      const answer = await answered(gateway, path, headers, body)
      const { status, text } = answer
      tries.push({
        operation,
        shape: name,
        bytes: body.length,
        status,
        milliseconds: Math.round(performance.now() - begun)
      })
      const problem = problemOf(answer)
      if (problem !== undefined) findings.push({ operation, body: `${body.length} bytes: ${name}`, answer: problem })
      const task = /"task_id":"(\w+)"/.exec(text)?.[1]
      if (task !== undefined) await cancelled(gateway, `${path}/${task}`)
    } while (tries.length < 3 && tries.every(({ milliseconds }) => milliseconds > answeredWithinMs))
    timed.push(...tries.slice(-1))
  }
  const slowest = timed.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, 10)
  log(`${timed.length} shapes of 2 MB; the slowest answers:`)
  for (const { milliseconds, operation, shape, status } of slowest) {
    log(`${String(milliseconds).padStart(6)} ms  ${status}  ${operation}: ${shape}`)
  }
  for (const { milliseconds, operation, shape } of timed) {
    if (milliseconds <= answeredWithinMs) continue
    findings.push({ operation, body: shape, answer: `took ${milliseconds} ms, more than ${answeredWithinMs}` })
  }
  const broken = gateway.processes.flatMap(({ hasExited, log, name }) => [
    ...(hasExited ? [`${name} has ended`] : []),
    ...log.split("\n").filter((line) => mistake.test(line)).map((line) => `${name}: ${line}`)
  ])
  return { statuses, findings, slowest, broken }
}

interface Answered {
  /** A status, or what came instead of one. */
  readonly status: number | "hung" | "broken"
  readonly text: string
}

const answered = async (
  gateway: Gateway,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer
): Promise<Answered> => {
  try {
    const answer = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json", ...headers },
      body: Uint8Array.from(body),
      signal: AbortSignal.timeout(patienceMs)
    })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    const isTimeout = error instanceof Error && error.name === "TimeoutError"
    return {
      status: isTimeout ? "hung" : "broken",
      text: String(error instanceof Error ? error.cause ?? error : error)
    }
  }
}

/** What must not be: no answer, a mistake of ours, or a refusal that does not say why. */
const problemOf = ({ status, text }: Answered): string | undefined => {
  if (typeof status === "string" || status >= 500) return `${status} ${text.slice(0, 500)}`
  if (status < 400) return undefined
  const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown; readonly type?: unknown } }
  return typeof error?.message === "string" && typeof error.type === "string" ? undefined : `${status} ${text}`
}

const cancelled = async (gateway: Gateway, path: string): Promise<void> => {
  const answer = await fetch(`${gateway.url}${path}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${gateway.key}` }
  })
  await answer.body?.cancel()
}
