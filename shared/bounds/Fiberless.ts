/**
 * Effects that run without a fiber as long as they wait for nothing but callbacks.
 *
 * Most requests wait once, for the provider's answer, and the fiber around that wait would cost more than the work. The steps of
 * a fiberless effect are function calls. If a step is any other effect, because something is unusual, that effect gets a fiber
 * with the run's services and parent span, and the next step follows its end. Other code sees an ordinary effect.
 */
import { Cause, Clock, Context, Effect, Effectable, Exit, Option, Tracer } from "effect"

/** Receives the exit of a step, once. */
type End<A, E> = (exit: Exit.Exit<A, E>) => void

const isExit = <A, E>(step: Effect.Effect<A, E>): step is Exit.Exit<A, E> => Exit.isExit(step)

/** One run of a fiberless effect, from its start to its end. */
export class Run {
  /** The services of effects that need a fiber. */
  context: Context.Context<never>
  /** The parent of spans that start now. */
  span: Tracer.AnySpan | undefined
  readonly clock: Clock.Clock
  readonly tracer: Tracer.Tracer
  #isStopped = false
  /** Ends the current wait. */
  #stop: (() => void) | undefined

  constructor(context: Context.Context<never>, span?: Tracer.AnySpan) {
    this.context = context
    this.span = span
    this.clock = Context.get(context, Clock.Clock)
    this.tracer = Context.get(context, Tracer.Tracer)
  }

  /** Interrupts the effect: it ends once its finalizers have. */
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

  /** Runs a step. */
  do<A, E>(step: Effect.Effect<A, E>, end: End<A, E>): void {
    if (isExit(step)) return end(step)
    if (this.#isStopped) return end(Exit.interrupt())
    if (step instanceof Fiberless) return step.start(this, end)
    const fiber = this.#fork(step)
    this.#stop = () => fiber.interruptUnsafe()
    fiber.addObserver((exit) => {
      this.#stop = undefined
      end(exit)
    })
  }

  /** Runs a step that is due even if the effect was interrupted. */
  finish<A, E>(step: Effect.Effect<A, E>, end: End<A, E>): void {
    if (isExit(step)) return end(step)
    this.#fork(Effect.uninterruptible(step)).addObserver(end)
  }

  /** Waits until `register` calls back, and ends the wait by the function that it returns if the effect is interrupted. */
  wait<A, E>(register: (resume: End<A, E>) => () => void, end: End<A, E>): void {
    if (this.#isStopped) return end(Exit.interrupt())
    let isOver = false
    const resume: End<A, E> = (exit) => {
      if (isOver) return
      isOver = true
      this.#stop = undefined
      end(exit)
    }
    const cancel = register(resume)
    if (isOver) return
    // V8 would allocate a closure assigned to a property in its old space, with everything that it captures
    const stop = () => {
      cancel()
      resume(Exit.interrupt())
    }
    this.#stop = stop
  }

  #fork<A, E>(step: Effect.Effect<A, E>) {
    const { context, span } = this
    return Effect.runForkWith(span === undefined ? context : Context.add(context, Tracer.ParentSpan, span))(step)
  }
}

abstract class Fiberless<A, E> extends Effectable.Class<A, E> {
  abstract start(run: Run, end: End<A, E>): void

  asEffect(): Effect.Effect<A, E> {
    return Effect.withFiber((fiber) =>
      Effect.callback<A, E>((resume) => {
        const run = new Run(fiber.context, fiber.cache.span)
        let onEnd: (() => void) | undefined
        let isOver = false
        this.start(run, (exit) => {
          isOver = true
          resume(exit)
          onEnd?.()
        })
        return Effect.callback<void>((stopped) => {
          onEnd = () => stopped(Effect.void)
          run.stop()
          if (isOver) onEnd()
        })
      })
    )
  }
}

/** A step that throws has found a bug. */
const attempt = <A, E>(step: () => Effect.Effect<A, E>): Effect.Effect<A, E> => {
  try {
    return step()
  } catch (defect) {
    return Exit.die(defect)
  }
}

class Suspended<A, E> extends Fiberless<A, E> {
  readonly #first: (run: Run) => Effect.Effect<A, E>

  constructor(first: (run: Run) => Effect.Effect<A, E>) {
    super()
    this.#first = first
  }

  start(run: Run, end: End<A, E>): void {
    run.do(attempt(() => this.#first(run)), end)
  }
}

abstract class Pair<A, E, B, E2> extends Fiberless<B, E2> {
  readonly first: Effect.Effect<A, E>
  readonly next: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>

  constructor(first: Effect.Effect<A, E>, next: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>) {
    super()
    this.first = first
    this.next = next
  }
}

class Sequence<A, E, B, E2> extends Pair<A, E, B, E2> {
  start(run: Run, end: End<B, E2>): void {
    run.do(this.first, (exit) => {
      if (run.isStopped) end(Exit.isSuccess(exit) ? Exit.interrupt() : exit as Exit.Exit<never>)
      else run.do(attempt(() => this.next(exit, run)), end)
    })
  }
}

class Ended<A, E, B, E2> extends Pair<A, E, B, E2> {
  start(run: Run, end: End<B, E2>): void {
    run.do(this.first, (exit) => run.finish(attempt(() => this.next(exit, run)), end))
  }
}

class Waiting<A, E> extends Fiberless<A, E> {
  readonly #register: (resume: End<A, E>) => () => void

  constructor(register: (resume: End<A, E>) => () => void) {
    super()
    this.#register = register
  }

  start(run: Run, end: End<A, E>): void {
    run.wait(this.#register, end)
  }
}

/** Starts an effect at once, without a parent span. `end` may run before this returns. */
export const run = <A, E>(context: Context.Context<never>, effect: Effect.Effect<A, E>, end: End<A, E>): Run => {
  const started = new Run(context)
  started.do(effect, end)
  return started
}

export const suspend = <A, E>(first: (run: Run) => Effect.Effect<A, E>): Effect.Effect<A, E> => new Suspended(first)

/** Waits for a callback. `register` returns what ends the wait if the effect is interrupted. */
export const callback = <A, E = never>(register: (resume: End<A, E>) => () => void): Effect.Effect<A, E> =>
  new Waiting(register)

export const flatMap = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (value: A) => Effect.Effect<B, E2>
): Effect.Effect<B, E | E2> =>
  new Sequence(
    self,
    (exit): Effect.Effect<B, E | E2> => Exit.isSuccess(exit) ? next(exit.value) : Exit.failCause(exit.cause)
  )

/** Continues after an expected error, as `Effect.catch` does. */
export const catchError = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (error: E) => Effect.Effect<B, E2>
): Effect.Effect<A | B, E2> => matchEffect(self, { onSuccess: Exit.succeed, onFailure: next })

export const matchEffect = <A, E, B, E2, C, E3>(
  self: Effect.Effect<A, E>,
  { onFailure, onSuccess }: {
    readonly onSuccess: (value: A) => Effect.Effect<B, E2>
    readonly onFailure: (error: E) => Effect.Effect<C, E3>
  }
): Effect.Effect<B | C, E2 | E3> =>
  new Sequence(self, (exit): Effect.Effect<B | C, E2 | E3> => {
    if (Exit.isSuccess(exit)) return onSuccess(exit.value)
    const error = Cause.findErrorOption(exit.cause)
    return Option.isSome(error) ? onFailure(error.value) : Exit.failCause(exit.cause as Cause.Cause<never>)
  })

/** Continues after any exit, also after an interruption, and is not interrupted from then on. */
export const matchExit = <A, E, B, E2>(
  self: Effect.Effect<A, E>,
  next: (exit: Exit.Exit<A, E>, run: Run) => Effect.Effect<B, E2>
): Effect.Effect<B, E2> => new Ended(self, next)

/** Runs a finalizer after any exit, also after an interruption. */
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

/** Runs what `within` returns in a span: a child of the current one, unless the options name a parent. */
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
