/** Fiberless effects end, fail, wait and stop as the same effects in a fiber do; only what is unusual among them gets a fiber. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, type Tracer } from "effect"
import * as Fiberless from "../../../shared/bounds/Fiberless.ts"

/** Runs the effect without a fiber, and tells what has ended it. */
const start = <A, E>(effect: Effect.Effect<A, E>) => {
  const ends: Array<Exit.Exit<A, E>> = []
  const run = Fiberless.run(Context.empty(), effect, (exit) => ends.push(exit))
  return { ends, run }
}

/** Waits for a callback, and tells whether the wait was ended early. */
const waiting = () => {
  let answer: ((exit: Exit.Exit<string, string>) => void) | undefined
  const state = { isCancelled: false }
  const effect = Fiberless.callback<string, string>((resume) => {
    answer = resume
    return () => {
      state.isCancelled = true
    }
  })
  return { effect, state, answer: (exit: Exit.Exit<string, string>) => answer?.(exit) }
}

const now = Fiberless.suspend(() => Effect.succeed("now"))

/** The id of the fiber that runs this; a fiberless effect has none. */
const fiberId = Effect.withFiber(({ id }) => Effect.succeed(id))

describe("a fiberless effect", () => {
  it("that waits for nothing ends before its start returns", () => {
    const { ends } = start(Fiberless.flatMap(now, (word) => Effect.succeed(`${word}!`)))
    assert.deepStrictEqual(ends, [Exit.succeed("now!")])
  })

  it("that waits goes on when it is called back, once", () => {
    const { answer, effect } = waiting()
    const { ends } = start(Fiberless.flatMap(effect, (word) => Effect.succeed(word.length)))
    assert.deepStrictEqual(ends, [])
    answer(Exit.succeed("four"))
    answer(Exit.fail("too late"))
    assert.deepStrictEqual(ends, [Exit.succeed(4)])
  })

  it("runs nothing before its start", () => {
    let isRun = false
    const effect = Fiberless.flatMap(now, () => {
      isRun = true
      return Effect.void
    })
    assert.isFalse(isRun)
    start(effect)
    assert.isTrue(isRun)
  })

  it.effect("gives a fiber to any other effect, with its services and its span", () =>
    Effect.gen(function*() {
      const Name = Context.Reference<string>("test/unit/bounds/Name", { defaultValue: () => "nobody" })
      const done = yield* Deferred.make<unknown, Cause.NoSuchElementError>()
      const inside = Effect.andThen(
        Effect.yieldNow,
        Effect.all([Name, Effect.map(Effect.currentSpan, ({ name }) => name)])
      )
      const outside: Array<string> = []
      const effect = Fiberless.flatMap(
        Fiberless.inSpan("call", { kind: "client" }, () => Fiberless.provideService(inside, Name, "somebody")),
        (found) =>
          Fiberless.suspend(({ context, span }) => {
            outside.push(Context.get(context, Name), String(span?.spanId))
            return Effect.succeed(found)
          })
      )
      Fiberless.run(yield* Effect.context<never>(), effect, (exit) => Deferred.doneUnsafe(done, exit))
      assert.deepStrictEqual(yield* Deferred.await(done), ["somebody", "call"])
      assert.deepStrictEqual(outside, ["nobody", "undefined"])
    }))

  it("recovers from expected errors only", () => {
    const recover = (effect: Effect.Effect<string, string>) =>
      start(Fiberless.catchError(effect, (error) => Effect.succeed(`after ${error}`))).ends
    assert.deepStrictEqual(recover(Effect.fail("no")), [Exit.succeed("after no")])
    assert.deepStrictEqual(recover(Effect.succeed("yes")), [Exit.succeed("yes")])
    assert.deepStrictEqual(recover(Effect.die("bug")), [Exit.die("bug")])
  })

  it("that throws ends with the defect, after its finalizers", () => {
    const bug = (): never => {
      throw new Error("bug")
    }
    const all: ReadonlyArray<Effect.Effect<void>> = [
      Fiberless.flatMap(now, bug),
      Fiberless.suspend(bug),
      Fiberless.callback(bug),
      Fiberless.matchExit(now, bug)
    ]
    for (const thrown of all) {
      const order: Array<string> = []
      const { ends } = start(Fiberless.onExit(thrown, (exit) => order.push(exit._tag)))
      assert.deepStrictEqual(order, ["Failure"])
      assert.isTrue(ends[0]?._tag === "Failure" && Cause.hasDies(ends[0].cause))
    }
  })
})

describe("an interruption", () => {
  it("ends the wait, runs the finalizers and nothing else", () => {
    const { answer, effect, state } = waiting()
    const order: Array<string> = []
    const { ends, run } = start(Fiberless.matchExit(
      Fiberless.catchError(
        Fiberless.flatMap(
          Fiberless.onExit(effect, (exit) => order.push(`inner ${exit._tag}`)),
          () => Effect.sync(() => order.push("goes on"))
        ),
        () => Effect.sync(() => order.push("recovers"))
      ),
      (exit, { isStopped }) => {
        order.push(`outer ${isStopped}`)
        return exit
      }
    ))
    run.stop()
    answer(Exit.succeed("late"))
    assert.isTrue(state.isCancelled)
    assert.deepStrictEqual(order, ["inner Failure", "outer true"])
    assert.isTrue(ends[0]?._tag === "Failure" && Cause.hasInterruptsOnly(ends[0].cause))
  })

  it("of a step with a fiber waits for that fiber's finalizers, and finalizers with fibers are not interrupted", async () => {
    const order: Array<string> = []
    const say = (word: string) => Effect.andThen(Effect.yieldNow, Effect.sync(() => order.push(word)))
    const ended = Promise.withResolvers<void>()
    const effect = Fiberless.matchExit(Effect.ensuring(Effect.never, say("fiber")), () => say("finalizer"))
    const run = Fiberless.run(Context.empty(), effect, () => ended.resolve())
    run.stop()
    run.stop()
    await ended.promise
    assert.deepStrictEqual(order, ["fiber", "finalizer"])
  })

  it.effect("of the fiber around it stops it", () =>
    Effect.gen(function*() {
      const { effect, state } = waiting()
      const fiber = yield* Effect.forkChild(effect)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isTrue(state.isCancelled)
    }))
})

describe("within a fiber", () => {
  it.effect("a fiberless effect is an effect like any other", () =>
    Effect.gen(function*() {
      const { answer, effect } = waiting()
      const fiber = yield* Effect.forkChild(Effect.exit(effect))
      yield* Effect.yieldNow
      answer(Exit.fail("no"))
      assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.fail("no"))
      assert.strictEqual(yield* now, "now")
      assert.notStrictEqual(yield* Fiberless.flatMap(now, () => fiberId), yield* fiberId)
    }))

  it.effect("its spans are children of the fiber's", () =>
    Effect.gen(function*() {
      const span = Fiberless.inSpan("inner", { kind: "client" }, (span) => Effect.succeed(span))
      const { parent } = yield* Effect.withSpan(span, "outer")
      assert.strictEqual(parent._tag === "Some" && parent.value._tag === "Span" ? parent.value.name : "", "outer")
    }))

  it.effect("a span ends with the exit of what it is around", () =>
    Effect.gen(function*() {
      let inner: Tracer.Span | undefined
      yield* Effect.exit(Fiberless.inSpan("inner", { kind: "client" }, (span) => {
        inner = span
        return Effect.fail("no")
      }))
      const status = inner?.status
      assert.deepStrictEqual(status?._tag === "Ended" ? status.exit : status, Exit.fail("no"))
    }))
})
