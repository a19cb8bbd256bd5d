/**
 * Records the producer spans of jobs, one per attempt: from the start of the wait until a worker claims the job, or the job fails
 * or is cancelled. The worker's own span is a child.
 */
import { Context, Exit, Option, type Tracer } from "effect"
import * as Attributes from "../../telemetry/Attributes.ts"

export class JobSpans {
  readonly #tracer: Tracer.Tracer
  readonly #nanos: () => bigint

  constructor(tracer: Tracer.Tracer, nanos: () => bigint) {
    this.#tracer = tracer
    this.#nanos = nanos
  }

  /** `before` is the span of the failed attempt before this one. */
  begin(
    job: Attributes.PublishedJob,
    attempt: number,
    parent: Tracer.AnySpan,
    before: Tracer.Span | undefined
  ): Tracer.Span {
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

  /** `published again` for an unclaimed job, under the same message id, so the stream stores it once. */
  event(span: Tracer.Span, name: "published" | "published again"): void {
    span.event(name, this.#nanos())
  }

  /** The job was claimed, was cancelled, or has failed without a worker, with the tag of its error. */
  end(span: Tracer.Span, outcome: "claimed" | "cancelled" | { readonly _tag: string }): void {
    const exit = outcome === "claimed" ? Exit.void : outcome === "cancelled" ? Exit.interrupt() : Exit.fail(outcome)
    span.end(this.#nanos(), exit)
  }
}
