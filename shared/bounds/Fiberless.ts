/**
 * Runs effects without a fiber as long as they wait for nothing but callbacks.
 *
 * Most requests wait once, for the provider's answer, and the fiber around that wait would cost more than the work. The steps of a
 * fiberless effect are function calls. A step that is any other effect, which is unusual, gets a fiber with the run's services and
 * parent span; the next step runs when it ends. Other code sees an ordinary effect.
 */
// @effect-diagnostics anyUnknownInErrorContext:off -- the steps of a run fail with errors of any type
import { Cause, Clock, Context, Effect, Effectable, Exit, Option, Tracer } from "effect"

/** A step of any type. */
type Step = Effect.Effect<unknown, unknown>
/** The exit of a step of any type. */
type End = Exit.Exit<unknown, unknown>

const isEnd = (step: Step): step is End => Exit.isExit(step)

/** One run of a fiberless effect, from its start to its end. */
export class Run {
  /** The services of effects that need a fiber. */
  context: Context.Context<never>
  /** The parent of spans that start now. */
  span: Tracer.AnySpan | undefined
  readonly clock: Clock.Clock
  readonly tracer: Tracer.Tracer
  readonly #onEnd: (end: End) => void
  /** The steps after the current one; the next step is the last element. */
  readonly #following: Array<Followed> = []
  #isStopped = false
  /** Ends the current wait. */
  #stop: (() => void) | undefined

  /** `onEnd` receives the exit of the effect. */
  constructor(context: Context.Context<never>, onEnd: (end: End) => void, span?: Tracer.AnySpan) {
    this.context = context
    this.#onEnd = onEnd
    this.span = span
    this.clock = Context.get(context, Clock.Clock)
    this.tracer = Context.get(context, Tracer.Tracer)
  }

  /** Interrupts the effect, which ends once its finalizers have run. */
  stop(): void {
    this.#isStopped = true
    const stop = this.#stop
    this.#stop = undefined
    stop?.()
  }

  /** Whether the effect was interrupted, so that only finalizers may still run. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Runs a step and the following ones, up to the next wait. */
  do(first: Step): void {
    let step: Step | undefined = first
    while (step !== undefined) {
      if (this.#following.length === 0 && isEnd(step)) return this.#onEnd(step)
      step = this.#next(step)
    }
  }

  /** Returns the step after this one; `undefined` if the run waits for it. An exception in a step becomes a defect. */
  #next(step: Step): Step | undefined {
    try {
      if (isEnd(step)) return this.#following.pop()?.next(step, this)
      if (this.#isStopped) return Exit.interrupt()
      return step instanceof Fiberless ? step.start(this) : this.#runInFiber(step)
    } catch (defect) {
      return Exit.die(defect)
    }
  }

  /** Sets what follows the step that starts now. */
  follow(following: Followed): void {
    this.#following.push(following)
  }

  /** Waits until `register` calls back. If the effect is interrupted, calls the function that `register` has returned. */
  wait(register: (resume: (end: End) => void) => () => void): End | undefined {
    let end = undefined as End | undefined
    let isWaiting = false
    const stop = register((exit) => {
      if (end !== undefined) return
      end = exit
      this.#stop = undefined
      if (isWaiting) this.do(exit)
    })
    if (end !== undefined) return end
    isWaiting = true
    this.#stop = stop
    return undefined
  }

  /** Runs a step even if the effect was interrupted. */
  finish(step: Step): End | undefined {
    return isEnd(step) ? step : this.wait((resume) => {
      this.#fork(Effect.uninterruptible(step)).addObserver(resume)
      return () => undefined
    })
  }

  #runInFiber(step: Step): End | undefined {
    return this.wait((resume) => {
      const fiber = this.#fork(step)
      fiber.addObserver(resume)
      return () => fiber.interruptUnsafe()
    })
  }

  #fork(step: Step) {
    const { context, span } = this
    return Effect.runForkWith(span === undefined ? context : Context.add(context, Tracer.ParentSpan, span))(step)
  }
}

abstract class Fiberless<A, E> extends Effectable.Class<A, E> {
  /** Returns the first step; `undefined` if the run waits for it. */
  abstract start(run: Run): Step | undefined

  asEffect(): Effect.Effect<A, E> {
    return Effect.withFiber((fiber) =>
      Effect.callback<A, E>((resume) => {
        let onEnd: (() => void) | undefined
        let isOver = false
        const run = new Run(fiber.context, (end) => {
          isOver = true
          resume(end as Exit.Exit<A, E>)
          onEnd?.()
        }, fiber.cache.span)
        run.do(this)
        return Effect.callback<void>((stopped) => {
          onEnd = () => stopped(Effect.void)
          run.stop()
          if (isOver) onEnd()
        })
      })
    )
  }
}

class Suspended<A, E> extends Fiberless<A, E> {
  readonly start: (run: Run) => Effect.Effect<A, E>

  constructor(start: (run: Run) => Effect.Effect<A, E>) {
    super()
    this.start = start
  }
}

class Waiting<A, E> extends Fiberless<A, E> {
  readonly #register: (resume: (exit: Exit.Exit<A, E>) => void) => () => void

  constructor(register: (resume: (exit: Exit.Exit<A, E>) => void) => () => void) {
    super()
    this.#register = register
  }

  start(run: Run): End | undefined {
    return run.wait((resume) => {
      const cancel = this.#register(resume)
      return () => {
        cancel()
        resume(Exit.interrupt())
      }
    })
  }
}

/** An effect, and what follows it. */
abstract class Followed<A = unknown, E = unknown> extends Fiberless<A, E> {
  readonly #effect: Step

  constructor(effect: Step) {
    super()
    this.#effect = effect
  }

  start(run: Run): Step {
    run.follow(this)
    return this.#effect
  }

  /** Returns the step after the effect's end; `undefined` if the run waits for it. */
  abstract next(end: End, run: Run): Step | undefined
}

class Matched<A, E, B, E2, C, E3> extends Followed<B | C, E2 | E3> {
  readonly #onSuccess: ((value: A) => Effect.Effect<B, E2>) | undefined
  readonly #onFailure: ((error: E) => Effect.Effect<C, E3>) | undefined

  constructor(
    effect: Effect.Effect<A, E>,
    onSuccess: ((value: A) => Effect.Effect<B, E2>) | undefined,
    onFailure?: (error: E) => Effect.Effect<C, E3>
  ) {
    super(effect)
    this.#onSuccess = onSuccess
    this.#onFailure = onFailure
  }

  next(end: Exit.Exit<A, E>, { isStopped }: Run): Step {
    if (Exit.isSuccess(end)) return isStopped ? Exit.interrupt() : this.#onSuccess?.(end.value) ?? end
    if (isStopped || this.#onFailure === undefined) return end
    const error = Cause.findErrorOption(end.cause)
    return Option.isSome(error) ? this.#onFailure(error.value) : end
  }
}

class Ended<A, E, B, E2> extends Followed<B, E2> {
  readonly #finalize: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>

  constructor(effect: Effect.Effect<A, E>, finalize: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>) {
    super(effect)
    this.#finalize = finalize
  }

  next(end: Exit.Exit<A, E>, run: Run): End | undefined {
    return run.finish(this.#finalize(end, run))
  }
}

/** Starts an effect immediately, without a parent span. `onEnd` may run before this returns. */
export const run = <A, E>(
  context: Context.Context<never>,
  effect: Effect.Effect<A, E>,
  onEnd: (exit: Exit.Exit<A, E>) => void
): Run => {
  const started = new Run(context, (end) => onEnd(end as Exit.Exit<A, E>))
  started.do(effect)
  return started
}

export const suspend = <A, E>(start: (run: Run) => Effect.Effect<A, E>): Effect.Effect<A, E> => new Suspended(start)

/** Waits for a callback. `register` returns a function that ends the wait, for an interruption. */
export const callback = <A, E = never>(
  register: (resume: (exit: Exit.Exit<A, E>) => void) => () => void
): Effect.Effect<A, E> => new Waiting(register)

export const flatMap = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (value: A) => Effect.Effect<B, E2>
): Effect.Effect<B, E | E2> => new Matched<A, E, B, E2, never, E>(self, next)

/** Continues after an expected error, as `Effect.catch` does. */
export const catchError = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (error: E) => Effect.Effect<B, E2>
): Effect.Effect<A | B, E2> => new Matched<A, E, A, never, B, E2>(self, undefined, next)

export const matchEffect = <A, E, B, E2, C, E3>(
  self: Effect.Effect<A, E>,
  { onFailure, onSuccess }: {
    readonly onSuccess: (value: A) => Effect.Effect<B, E2>
    readonly onFailure: (error: E) => Effect.Effect<C, E3>
  }
): Effect.Effect<B | C, E2 | E3> => new Matched(self, onSuccess, onFailure)

/** Continues after any exit, including an interruption. What follows cannot be interrupted. */
export const matchExit = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>
): Effect.Effect<B, E2> => new Ended(self, next)

/** Runs a finalizer after any exit, including an interruption. */
export const onExit = <A, E>(
  self: Effect.Effect<A, E>,
  finalize: (exit: Exit.Exit<A, E>) => void
): Effect.Effect<A, E> =>
  new Ended(self, (exit) => {
    finalize(exit)
    return exit
  })

/** As `Effect.provideService`. */
export const provideService = <A, E, I, S>(
  self: Effect.Effect<A, E>,
  key: Context.Key<I, S>,
  service: NoInfer<S>
): Effect.Effect<A, E> =>
  suspend((run) => {
    const outer = run.context
    run.context = Context.add(outer, key, service)
    return onExit(self, () => {
      run.context = outer
    })
  })

/** Runs the effect from `within` in a span, which is a child of the current span unless the options name a parent. */
export const inSpan = <A, E>(
  name: string,
  { kind, parent: given }: { readonly kind: Tracer.SpanKind; readonly parent?: Tracer.AnySpan },
  within: (span: Tracer.Span) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  suspend((run) => {
    const { clock, span: outer, tracer } = run
    const parent = given ?? outer
    const span = tracer.span({
      name,
      kind,
      parent: Option.fromUndefinedOr(parent),
      sampled: parent?.sampled ?? true,
      startTime: clock.currentTimeNanosUnsafe(),
      annotations: Context.empty(),
      links: [],
      root: false
    })
    run.span = span
    return onExit(within(span), (exit) => {
      run.span = outer
      span.end(clock.currentTimeNanosUnsafe(), exit)
    })
  })
