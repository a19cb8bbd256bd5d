/**
 * The spans of jobs on their way to a worker, one for each attempt: from when it began to wait until a worker has it, or
 * nobody wants it any more. The worker's own span is its child.
 */
import { Context, Exit, Option, type Tracer } from "effect"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as TraceParent from "../../telemetry/TraceParent.ts"

export interface TracedJob {
  readonly id: string
  readonly subject: string
  readonly operation: string
  readonly model: string
  readonly bodySize: number
}

export class JobSpans {
  readonly #tracer: Tracer.Tracer
  readonly #nanos: () => bigint

  constructor(tracer: Tracer.Tracer, nanos: () => bigint) {
    this.#tracer = tracer
    this.#nanos = nanos
  }

  /** `before` is the span of the attempt that came to nothing. */
  begin(job: TracedJob, attempt: number, parent: Tracer.AnySpan, before: Tracer.Span | undefined): Tracer.Span {
    const span = this.#tracer.span({
      name: `publish ${job.subject}`,
      kind: "producer",
      parent: Option.some(parent),
      annotations: Context.empty(),
      links: before === undefined ? [] : [{ span: before, attributes: {} }],
      startTime: this.#nanos(),
      root: false,
      sampled: parent.sampled
    })
    Attributes.published(job, attempt)(span)
    return span
  }

  /** It has left for the stream. */
  published(span: Tracer.Span): void {
    span.event("published", this.#nanos())
  }

  /** It has left once more under the same message id, of which the stream keeps one: no worker had said that it has it. */
  publishedAgain(span: Tracer.Span): void {
    span.event("published again", this.#nanos())
  }

  /** A worker has it, or it has failed for want of one, by the tag of its error. `cancelled`: nobody wants it any more. */
  end(span: Tracer.Span, outcome: "claimed" | "cancelled" | { readonly _tag: string }): void {
    const exit = outcome === "claimed" ? Exit.void : outcome === "cancelled" ? Exit.interrupt() : Exit.fail(outcome)
    span.end(this.#nanos(), exit)
  }

  /** What the worker is told. */
  static header(span: Tracer.Span): string {
    return TraceParent.format(span)
  }
}
