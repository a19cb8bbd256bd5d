/** The rows, one for each kind of load, and the targets for one stack's figures relative to another's. */
import type { Workload } from "../../shared/contract/Operation.ts"

export const stackNames = ["floor", "gateway", "unlimited", "sampled", "untraced", "portkey", "litellm"] as const
/**
 * `gateway` is the full gateway, `unlimited` the same processes for a key without limits, `sampled` another gateway with a tenth of
 * the traces, `untraced` one without telemetry, `floor` the minimum cost of this architecture, `portkey` and `litellm` simpler
 * gateways in one process.
 */
export type StackName = typeof stackNames[number]

export interface Row {
  readonly name: string
  readonly workload: Workload
  readonly path: string
  readonly body: { readonly model: string; readonly [field: string]: unknown }
  readonly connections: number
  /** Stacks to skip. */
  readonly without?: ReadonlyArray<StackName>
}

/** The chunks of every stream. */
export const chunkCount = 50
export const chunkMillis = 5

const chat = (model: string, stream: boolean) => ({
  workload: "chat" as const,
  path: "/v1/chat/completions",
  body: {
    model,
    messages: [
      { role: "system", content: "You answer in one sentence." },
      { role: "user", content: "What does a gateway in front of many model providers give a platform team?" }
    ],
    temperature: 0.2,
    max_tokens: 256,
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {})
  }
})

const embeddings = (count: number) => ({
  workload: "embeddings" as const,
  path: "/v1/embeddings",
  body: {
    model: `vectors-${count}`,
    input: Array.from({ length: count }, (_, index) => `The text number ${index} of a few that are to be compared.`),
    encoding_format: "base64"
  }
})

/** Variants of the gateway, which are compared only in the first row. */
const variants = ["unlimited", "sampled", "untraced"] as const
/** Stacks to skip in rows that would take minutes with LiteLLM. */
const without = [...variants, "litellm"] as const

/** The first row warms the processes up for all others. */
export const rows: ReadonlyArray<Row> = [
  { name: "JSON at 64 connections", ...chat("bench", false), connections: 64 },
  { name: "JSON at 1 connection", ...chat("bench", false), connections: 1, without: variants },
  { name: "JSON at 8 connections", ...chat("bench", false), connections: 8, without },
  { name: "JSON at 256 connections", ...chat("bench", false), connections: 256, without },
  { name: "SSE at 64 connections", ...chat("bench", true), connections: 64, without: variants },
  { name: "SSE paced at 64 connections", ...chat("paced", true), connections: 64, without },
  { name: "embeddings of 1 input", ...embeddings(1), connections: 16, without },
  { name: "embeddings of 128 inputs", ...embeddings(128), connections: 16, without },
  {
    name: "pictures of 4 MB",
    workload: "images",
    path: "/v1/images/generations",
    body: { model: "picture", prompt: "A sailing boat at sunset" },
    connections: 4,
    without
  }
]

/** Answers per second, the median time of an answer in milliseconds, or the CPU time of an answer in microseconds. */
export type Figure = "rate" | "p50Millis" | "cpuMicros"

/** The ratio of a stack's figure to another's, in the same row and in neighbouring rounds. */
export interface Target {
  readonly row: string
  readonly figure: Figure
  readonly of: StackName
  readonly to: StackName
  readonly is: "at least" | "at most"
  readonly bound: number
}

export const targets: ReadonlyArray<Target> = [
  { row: "JSON at 64 connections", figure: "rate", of: "gateway", to: "floor", is: "at least", bound: 0.45 },
  { row: "JSON at 64 connections", figure: "cpuMicros", of: "gateway", to: "floor", is: "at most", bound: 2.6 },
  { row: "SSE at 64 connections", figure: "rate", of: "gateway", to: "floor", is: "at least", bound: 0.6 },
  { row: "JSON at 1 connection", figure: "p50Millis", of: "gateway", to: "floor", is: "at most", bound: 1.6 },
  { row: "JSON at 64 connections", figure: "rate", of: "sampled", to: "floor", is: "at least", bound: 0.5 },
  { row: "JSON at 64 connections", figure: "rate", of: "gateway", to: "unlimited", is: "at least", bound: 0.95 },
  { row: "JSON at 64 connections", figure: "rate", of: "gateway", to: "untraced", is: "at least", bound: 0.9 },
  { row: "JSON at 64 connections", figure: "rate", of: "gateway", to: "portkey", is: "at least", bound: 2 },
  { row: "SSE at 64 connections", figure: "rate", of: "gateway", to: "portkey", is: "at least", bound: 2.5 },
  { row: "SSE paced at 64 connections", figure: "cpuMicros", of: "gateway", to: "portkey", is: "at most", bound: 1 }
]
