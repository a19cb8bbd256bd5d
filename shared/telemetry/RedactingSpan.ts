/**
 * A span that omits sensitive data. It records an error's kind but not its message, in which a provider may quote a prompt, and a
 * URL's route but not the rest, which may hold a key or a signature. Internal spans outside a request are not recorded.
 */
import { Cause, type Context, Exit, Option, type Tracer } from "effect"
import { Hex } from "effect/encoding"
import { name } from "./Attributes.ts"
import { SpanShape } from "./SpanShape.ts"

type Options = Parameters<Tracer.Tracer["span"]>[0]

/** `unset`: the span neither failed nor completed, as after a cancellation. */
export type Outcome = "ok" | "unset" | { readonly failed: string }

/** A span for the export. */
export interface EndedSpan extends Pick<Tracer.Span, "kind" | "parent" | "spanId" | "traceId"> {
  /** Both in epoch nanoseconds. */
  readonly startTime: bigint
  readonly endTime: bigint
  readonly outcome: Outcome
  /** The rest, except for the values that do not belong to it. */
  readonly shape: SpanShape
  readonly values: ReadonlyArray<unknown>
}

/** The client cancelled, or the call was not made. */
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
  readonly values: Array<unknown> = []
  readonly #onEnd: (ended: EndedSpan) => void
  endTime = 0n
  outcome: Outcome = "unset"
  shape: SpanShape
  #spanId: string | undefined
  #exit: Exit.Exit<unknown, unknown> | undefined

  /** Calls `onEnd` if the span is sampled. */
  constructor(options: Options, onEnd: (ended: EndedSpan) => void) {
    const { kind, parent } = options
    this.name = options.name
    this.parent = parent
    this.annotations = options.annotations
    this.kind = kind
    this.links = options.links
    this.startTime = options.startTime
    this.traceId = Option.isSome(parent) ? parent.value.traceId : Hex.random(32)
    // internal root spans, such as those of a service's start, belong to no request
    this.sampled = options.sampled && (kind !== "internal" || Option.isSome(parent))
    this.shape = SpanShape.named(options.name)
    this.#onEnd = onEnd
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
    return this.shape.attributes(this.values)
  }

  attribute(key: string, value: unknown): void {
    if (this.#exit !== undefined || key === "url.full" || key === "url.query") return
    this.shape = this.shape.attribute(key, value, this.values)
  }

  event(name: string, at: bigint, attributes: Record<string, unknown> = nothing): void {
    if (this.#exit === undefined) this.shape = this.shape.event({ name, at, attributes }, this.values)
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
    if (!this.sampled) return
    for (const link of this.links) this.shape = this.shape.link(link, this.values)
    this.#onEnd(this)
  }
}
