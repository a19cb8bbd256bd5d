/**
 * A span that omits sensitive data. It records an error's kind but not its message, in which a provider may quote a prompt, and a
 * URL's route but not the rest, which may hold a key or a signature. Internal spans outside a request are not exported.
 */
import { Cause, type Context, Exit, Option, type Tracer } from "effect"
import { Hex } from "effect/encoding"
import { name } from "./Attributes.ts"

type Options = Parameters<Tracer.Tracer["span"]>[0]

export interface SpanEvent {
  readonly name: string
  /** Epoch nanoseconds. */
  readonly at: bigint
  readonly attributes: Readonly<Record<string, unknown>>
}

/** `unset`: the span neither failed nor completed, as after a cancellation. */
export type Outcome = "ok" | "unset" | { readonly failed: string }

export interface EndedSpan {
  readonly span: RedactingSpan
  /** Both in epoch nanoseconds. */
  readonly startTime: bigint
  readonly endTime: bigint
  readonly outcome: Outcome
}

/** The client cancelled, or the call was not made. */
const noFailures: ReadonlySet<string> = new Set(["Cancelled", "Skipped"])

const kindOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (typeof error === "object" && error !== null && "_tag" in error) return String(error._tag)
  return "Defect"
}

const nothing: Readonly<Record<string, unknown>> = {}

export class RedactingSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly spanId: string
  readonly traceId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly sampled: boolean
  readonly links: Array<Tracer.SpanLink>
  readonly #onEnd: (ended: EndedSpan) => void
  /** Attributes as parallel arrays: a map of a dozen takes five times the memory. */
  readonly keys: Array<string> = []
  readonly values: Array<unknown> = []
  #status: Tracer.SpanStatus
  #events: Array<SpanEvent> | undefined

  /** Calls `onEnd` if the span is sampled. */
  constructor(options: Options, onEnd: (ended: EndedSpan) => void) {
    const { kind, parent } = options
    this.name = options.name
    this.parent = parent
    this.annotations = options.annotations
    this.kind = kind
    this.links = options.links
    this.traceId = Option.isSome(parent) ? parent.value.traceId : Hex.random(32)
    this.spanId = Hex.random(16)
    // internal root spans, such as those of a service's start, belong to no request
    this.sampled = options.sampled && (kind !== "internal" || Option.isSome(parent))
    this.#status = { _tag: "Started", startTime: options.startTime }
    this.#onEnd = onEnd
  }

  get status(): Tracer.SpanStatus {
    return this.#status
  }

  get attributes(): ReadonlyMap<string, unknown> {
    return new Map(this.keys.map((key, index) => [key, this.values[index]]))
  }

  get events(): ReadonlyArray<SpanEvent> {
    return this.#events ?? []
  }

  attribute(key: string, value: unknown): void {
    if (key === "url.full" || key === "url.query" || this.#status._tag === "Ended") return
    const at = this.keys.indexOf(key)
    if (at === -1) {
      this.keys.push(key)
      this.values.push(value)
      // the service's own route is more specific than the router's
    } else if (key !== name.httpRoute) this.values[at] = value
  }

  event(name: string, at: bigint, attributes: Record<string, unknown> = nothing): void {
    if (this.#status._tag === "Ended") return
    this.#events ??= []
    this.#events.push({ name, at, attributes })
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) this.links.push(link)
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.#status._tag === "Ended") return
    const { startTime } = this.#status
    const outcome = this.#outcomeOf(exit)
    if (typeof outcome === "object") {
      if (!this.keys.includes(name.errorType)) this.attribute(name.errorType, outcome.failed)
      this.event("exception", endTime, { "exception.type": outcome.failed })
    } else if (outcome === "unset") this.attribute(name.cancelled, true)
    this.#status = { _tag: "Ended", startTime, endTime, exit }
    if (this.sampled) this.#onEnd({ span: this, startTime, endTime, outcome })
  }

  #outcomeOf(exit: Exit.Exit<unknown, unknown>): Outcome {
    if (Exit.isSuccess(exit)) return "ok"
    if (Cause.hasInterruptsOnly(exit.cause)) return "unset"
    const kind = kindOf(exit.cause)
    return noFailures.has(kind) ? "unset" : { failed: kind }
  }
}
