/**
 * A tracer that tells no more than it may. Of an error it tells the kind: the message is for the client, and may hold what
 * a provider quoted of a prompt. Of an address it tells nothing but the route: the rest may hold a key or a signature. Of
 * what belongs to no request it tells nothing.
 */
import { Cause, type Context, Effect, Exit, Layer, Option, Tracer } from "effect"
import { name } from "./Attributes.ts"

/** What a span hears of an error. */
class Kind extends Error {
  constructor(tag: string) {
    super(tag)
    this.name = tag
    this.stack = tag
  }
}

/** Somebody gave up waiting, or the call was not made after all: nothing has failed. */
const noFailures: ReadonlySet<string> = new Set(["Cancelled", "Passed"])

/** How HTTP servers wrap a status from 500 on; the span has been told what is behind it. */
const wrapper = "HttpServerError"

const kindOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (typeof error === "object" && error !== null && "_tag" in error) return String(error._tag)
  // its message may be anything
  return "Defect"
}

const withheld: ReadonlySet<string> = new Set(["url.full", "url.query"])

/** What a service has said of them is not to be overwritten by the server, which knows the path but not what is in it. */
const firstStands: ReadonlySet<string> = new Set([name.httpRoute, name.urlPath])

class DiscreetSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly #span: Tracer.Span
  #errorType: string | undefined
  #isBroken = false

  constructor(span: Tracer.Span) {
    this.#span = span
  }

  get name(): string {
    return this.#span.name
  }
  get spanId(): string {
    return this.#span.spanId
  }
  get traceId(): string {
    return this.#span.traceId
  }
  get parent(): Option.Option<Tracer.AnySpan> {
    return this.#span.parent
  }
  get annotations(): Context.Context<never> {
    return this.#span.annotations
  }
  get status(): Tracer.SpanStatus {
    return this.#span.status
  }
  get attributes(): ReadonlyMap<string, unknown> {
    return this.#span.attributes
  }
  get links(): ReadonlyArray<Tracer.SpanLink> {
    return this.#span.links
  }
  get sampled(): boolean {
    return this.#span.sampled
  }
  get kind(): Tracer.SpanKind {
    return this.#span.kind
  }

  attribute(key: string, value: unknown): void {
    if (withheld.has(key)) return
    if (firstStands.has(key) && this.#span.attributes.has(key)) return
    if (key === name.errorType) this.#errorType = String(value)
    if (key === name.broken) this.#isBroken = value === true
    this.#span.attribute(key, value)
  }

  event(name: string, startTime: bigint, attributes?: Record<string, unknown>): void {
    this.#span.event(name, startTime, attributes)
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    this.#span.addLinks(links)
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (Exit.isSuccess(exit)) {
      return this.#span.end(endTime, this.#isBroken ? this.#failed(this.#errorType ?? "Defect") : exit)
    }
    const kind = kindOf(exit.cause)
    if (Cause.hasInterruptsOnly(exit.cause) || noFailures.has(kind)) {
      this.#span.attribute(name.cancelled, true)
      return this.#span.end(endTime, Exit.interrupt())
    }
    this.#span.end(endTime, this.#failed(kind === wrapper ? this.#errorType ?? kind : kind))
  }

  #failed(kind: string): Exit.Exit<never, unknown> {
    if (this.#errorType === undefined) this.#span.attribute(name.errorType, kind)
    return Exit.failCause(Cause.fail<unknown>(new Kind(kind)))
  }
}

type Options = Parameters<Tracer.Tracer["span"]>[0]

/** A service's own doings, as at its start, belong to no request: what begins there, and is nobody's call, is not told. */
const ofRequest = (options: Options): Options =>
  options.kind === "internal" && Option.isNone(options.parent) ? { ...options, sampled: false } : options

/** Makes the tracer below discreet. Effect's own, which tells nobody anything, is left as it is. */
export const layer = Layer.effect(
  Tracer.Tracer,
  Effect.map(
    Tracer.Tracer,
    (tracer) =>
      tracer === Tracer.nativeTracer
        ? tracer
        : Tracer.make({ span: (options) => new DiscreetSpan(tracer.span(ofRequest(options))) })
  )
)
