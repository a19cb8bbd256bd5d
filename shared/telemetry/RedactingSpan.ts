/**
 * A span that omits sensitive data. It records an error's kind but not its message, in which a provider may quote a prompt, and a
 * URL's route but not the rest, which may hold a key or a signature. Internal spans outside a request are not recorded.
 */
import { Cause, type Context, Exit, Option, type Tracer } from "effect"
import { Hex } from "effect/encoding"
import { name } from "./Attributes.ts"
import type { Sampling } from "./Sampling.ts"
import { type SpanEvent, SpanShape } from "./SpanShape.ts"

type Options = Parameters<Tracer.Tracer["span"]>[0]

/** How a span ended. `unset`: neither failed nor completed, as after a cancellation. */
export type Outcome = "ok" | "unset" | { readonly failed: string }

/** Name, attributes, events and links of a span: the shape that it shares with other spans, and its own values. */
export interface SpanContent {
  readonly shape: SpanShape
  readonly values: ReadonlyArray<unknown>
}

/** A span that has ended, for the export. */
export interface EndedSpan extends Pick<Tracer.Span, "kind" | "parent" | "spanId" | "traceId"> {
  /** Both in epoch nanoseconds. */
  readonly startTime: bigint
  readonly endTime: bigint
  readonly outcome: Outcome
  readonly content: SpanContent
}

/** The errors that are not failures: the client has cancelled, or the call was not made. */
const noFailures: ReadonlySet<string> = new Set(["Cancelled", "Skipped"])

const kindOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (typeof error === "object" && error !== null && "_tag" in error) return String(error._tag)
  return "Defect"
}

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Outcome => {
  if (Exit.isSuccess(exit)) return "ok"
  if (Cause.hasInterruptsOnly(exit.cause)) return "unset"
  const kind = kindOf(exit.cause)
  return noFailures.has(kind) ? "unset" : { failed: kind }
}

const nothing: Readonly<Record<string, unknown>> = {}

/** Maximum number of spans of a request that are held. */
const maxHeld = 128

export class RedactingSpan implements Tracer.Span, EndedSpan {
  readonly _tag = "Span"
  readonly name: string
  readonly traceId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly sampled: boolean
  readonly links: Array<Tracer.SpanLink>
  readonly startTime: bigint
  readonly #sampling: Sampling
  readonly #onEnd: (ended: EndedSpan) => void
  /** The request's first span in this process; `undefined` if its spans are dropped. */
  readonly #first: RedactingSpan | undefined
  /** Pairs: the key and value of each attribute, and `undefined` and the event for each event. */
  readonly #entries: Array<unknown> = []
  endTime = 0n
  outcome: Outcome = "unset"
  #spanId: string | undefined
  #content: SpanContent | undefined
  #exit: Exit.Exit<unknown, unknown> | undefined
  /** Only in a first span: the ended spans of its request, which are exported if the request fails or is slow. */
  #held: Array<EndedSpan> | undefined
  /** Only in a first span: whether the request has failed or was slow. */
  #isKept = false

  /** Calls `onEnd` with each span for the export. */
  constructor(options: Options, sampling: Sampling, onEnd: (ended: EndedSpan) => void) {
    const { kind } = options
    const parent = Option.getOrUndefined(options.parent)
    this.name = options.name
    this.parent = options.parent
    this.annotations = options.annotations
    this.kind = kind
    this.links = options.links
    this.startTime = options.startTime
    this.traceId = parent?.traceId ?? Hex.random(32)
    this.#sampling = sampling
    this.#onEnd = onEnd
    if (parent instanceof RedactingSpan) {
      this.#first = parent.#first
      this.sampled = parent.sampled
    } else {
      // internal root spans, such as those of a service's start, belong to no request
      const belongs = kind !== "internal" || parent !== undefined
      const { startTime, traceId } = this
      const decision = belongs ? sampling.decide({ traceId, parent, startTime }) : "drop"
      this.#first = decision === "drop" ? undefined : this
      this.sampled = decision === "export"
    }
  }

  get spanId(): string {
    return this.#spanId ??= Hex.random(16)
  }

  get status(): Tracer.SpanStatus {
    const { endTime, startTime } = this
    return this.#exit === undefined
      ? { _tag: "Started", startTime }
      : { _tag: "Ended", startTime, endTime, exit: this.#exit }
  }

  get attributes(): ReadonlyMap<string, unknown> {
    const attributes = new Map<string, unknown>()
    const entries = this.#entries
    for (let index = 0; index < entries.length; index += 2) {
      const key = entries[index] as string | undefined
      if (key !== undefined) attributes.set(key, entries[index + 1])
    }
    return attributes
  }

  /** Computed on demand after the span's end: that is faster for many spans together, and most held spans never need it. */
  get content(): SpanContent {
    return this.#content ??= this.#findContent()
  }

  attribute(key: string, value: unknown): void {
    if (key !== "url.full" && key !== "url.query") this.#add(key, value)
  }

  event(name: string, at: bigint, attributes: Record<string, unknown> = nothing): void {
    this.#add(undefined, { name, at, attributes })
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) this.links.push(link)
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.#exit !== undefined) return
    const outcome = outcomeOf(exit)
    if (typeof outcome === "object") {
      if (!this.attributes.has(name.errorType)) this.attribute(name.errorType, outcome.failed)
      this.event("exception", endTime, { "exception.type": outcome.failed })
    } else if (outcome === "unset") this.attribute(name.cancelled, true)
    this.endTime = endTime
    this.outcome = outcome
    this.#exit = exit
    if (this.sampled) this.#onEnd(this)
    else if (this.#first !== undefined) this.#first.#take(this)
  }

  #add(key: string | undefined, value: unknown): void {
    if (this.#first !== undefined && this.#exit === undefined) this.#entries.push(key, value)
  }

  #findContent(): SpanContent {
    const values: Array<unknown> = []
    const entries = this.#entries
    let shape = SpanShape.named(this.name)
    for (let index = 0; index < entries.length; index += 2) {
      const key = entries[index] as string | undefined
      const value = entries[index + 1]
      shape = key === undefined ? shape.event(value as SpanEvent, values) : shape.attribute(key, value, values)
    }
    for (const link of this.links) shape = shape.link(link, values)
    return { shape, values }
  }

  /** Takes an ended span of this request, which was not selected for export. */
  #take(span: RedactingSpan): void {
    const isSlow = span === this && span.endTime - span.startTime >= this.#sampling.slowNanos
    if (isSlow || typeof span.outcome === "object") this.#isKept = true
    const held = this.#held ??= []
    if (this.#isKept) {
      this.#held = undefined
      for (const one of held) this.#onEnd(one)
      this.#onEnd(span)
    } else if (this.#exit !== undefined) this.#held = undefined
    else if (held.length < maxHeld) held.push(span)
  }
}
