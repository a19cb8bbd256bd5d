/**
 * A worker that dies, freezes or loses its ingress in the middle of a job.
 *
 * Each test begins with one worker, so that it knows which has the job, and starts the other during the job.
 */
import { assert, describe, it } from "@effect/vitest"
import { beforeEach } from "vitest"
import { chat, outcomeOf, startStream } from "../../fixture/client/ChatClient.ts"
import { type AnyGateway, Gateway, type ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { sharedProcesses } from "../../fixture/gateway/SharedGateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { redeliver } from "../../fixture/nats/LostWorkers.ts"
import type { Received } from "../../fixture/provider/FakeProvider.ts"

const shared = sharedProcesses()

let callsBefore = 0
let worker: ServiceProcess
beforeEach(async () => {
  const { provider } = shared()
  worker = await onlyWorker()
  provider.behave({ kind: "answer" })
  callsBefore = provider.requests.length
})

/** The calls of the test so far, in order of arrival. */
const calls = (): ReadonlyArray<Received> => shared().provider.requests.slice(callsBefore)

/** Resolves with call number `count` of the test. */
const untilCall = async (count: number): Promise<Received> => {
  await shared().provider.until(() => calls().length >= count)
  return calls()[count - 1]!
}

/** Those that a test has given an environment of its own. */
const special = new WeakSet<ServiceProcess>()

/** The only worker. If an earlier test has left others, or this test gives it an environment, a new one replaces them. */
const onlyWorker = async (environment?: Readonly<Record<string, string>>): Promise<ServiceProcess> => {
  const running = shared().workers.filter(({ hasExited }) => !hasExited)
  const [first, ...others] = running
  if (first !== undefined && others.length === 0 && environment === undefined && !special.has(first)) return first
  const only = await shared().startWorker(environment)
  if (environment !== undefined) special.add(only)
  await Promise.all(running.map((worker) => worker.remove()))
  return only
}

/** Kills the worker while another one runs, which is the next. */
const replace = async (): Promise<void> => {
  const next = await shared().startWorker()
  await worker.kill()
  worker = next
}

/** Has the stream deliver the jobs of lost workers again. No worker may start them: returns once they are acknowledged. */
const untilSettled = async (): Promise<void> => {
  const { nats } = shared()
  await redeliver(nats, "chat")
  await untilNoJobs(nats)
}

describe("a worker that is killed", () => {
  it("before the first byte: another worker answers", async () => {
    const gateway = shared()
    const { provider } = gateway
    for (const [index, stream] of [false, true].entries()) {
      provider.behaveOnce({ kind: "silent" })
      const answer = outcomeOf(gateway.request(chat("free-chat", { stream })))
      await untilCall(2 * index + 1)
      await replace()
      assert.deepStrictEqual(await answer, { kind: "whole" })
      await untilSettled()
      assert.lengthOf(calls(), 2 * index + 2)
    }
  })

  it("twice over the same request: that request fails, and a third worker serves all others", async () => {
    const gateway = shared()
    const { provider } = gateway
    provider.behave({ kind: "silent" })
    const answer = gateway.request(chat("free-chat"))
    for (let loss = 1; loss <= 2; loss++) {
      await untilCall(loss)
      await replace()
    }
    const refused = await answer
    assert.strictEqual(refused.headers.get("x-should-retry"), "false")
    assert.deepInclude(await outcomeOf(refused), { kind: "refused", status: 502, code: "poison_request" })
    const { ingress } = gateway
    assert.include(ingress.log, "two workers in a row were lost while running it")
    const metrics = await (await fetch(`${ingress.healthUrl}/metrics`)).text()
    assert.match(metrics, /^gateway_queue_poison_jobs_total\{[^}]*workload="chat"[^}]*\} 1$/m)
    provider.behave({ kind: "answer" })
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    await untilSettled()
    assert.lengthOf(calls(), 3)
  })

  it("before the first byte of a paid call: the request fails, and the call is not repeated", async () => {
    const gateway = shared()
    const { provider } = gateway
    provider.behave({ kind: "silent" })
    const answer = gateway.request(chat("paid-chat"))
    await untilCall(1)
    await replace()
    assert.deepInclude(await outcomeOf(answer), { kind: "refused", status: 502, code: "worker_lost" })
    // JetStream itself delivers the job again, six seconds after its worker's last message
    await untilNoJobs(gateway.nats)
    assert.lengthOf(calls(), 1)
  })

  it("after the first byte: the stream ends with an error and is not taken as complete", async () => {
    const gateway = shared()
    const { provider } = gateway
    for (const model of ["free-chat", "paid-chat"]) {
      provider.behaveOnce({ kind: "hold", after: 2 })
      const stream = await startStream(gateway.request(chat(model, { stream: true })))
      await replace()
      assert.deepStrictEqual(await stream.outcome(), { kind: "failed", code: "worker_lost" })
    }
    assert.lengthOf(calls(), 2)
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    await untilSettled()
  })
})

describe("sessions while workers are killed", () => {
  interface Session {
    readonly id: number
    /** Whether it is known by a header only, because its instructions change. */
    readonly isNamed: boolean
    readonly messages: Array<{ readonly role: string; readonly content: string }>
    readonly upstreams: Array<string | null>
  }

  const newSession = (id: number): Session => ({
    id,
    isNamed: id % 2 === 1,
    messages: [{ role: "user", content: `Session ${id}` }],
    upstreams: []
  })

  const takeTurn = async (gateway: AnyGateway, { id, isNamed, messages, upstreams }: Session) => {
    const instructions = { role: "system", content: isNamed ? `Turn ${upstreams.length}` : "Be brief." }
    const answer = await gateway.request(
      { model: "world", messages: [instructions, ...messages] },
      isNamed ? { headers: { "x-session-id": `${id}` } } : {}
    )
    assert.strictEqual(answer.status, 200)
    upstreams.push(answer.headers.get("x-gateway-provider"))
    const { choices } = await answer.json() as { choices: ReadonlyArray<{ message: Session["messages"][number] }> }
    messages.push(choices[0]!.message, { role: "user", content: "And then?" })
  }

  const options = {
    workers: 2,
    wired: true,
    providers: (baseUrl: string) =>
      ["east", "west"].map((name) => `  ${name}: { protocol: openai, baseUrl: "${baseUrl}", idempotent: true }`).join(
        "\n"
      ),
    models: "  world: { workload: chat, targets: [{ provider: east }, { provider: west }] }"
  }

  it.live("of 20 turns keep at least 19 of them at one of two upstreams", () =>
    Gateway.runHere(options, async (gateway) => {
      // long enough for a worker to die during calls
      gateway.provider.behave({ kind: "silent", forMs: 50 })
      // too few for a worker to find a target full
      const sessions = Array.from({ length: 8 }, (_, id) => newSession(id))
      for (let round = 0; round < 4; round++) {
        await gateway.startWorker()
        const turns = sessions.map(async (session) => {
          for (let turn = 0; turn < 5; turn++) await takeTurn(gateway, session)
        })
        const calls = gateway.provider.requests.length
        await gateway.provider.until(() => gateway.provider.requests.length >= calls + sessions.length)
        gateway.workers[round]!.kill()
        await Promise.all(turns)
      }
      const used = new Set<string | null>()
      for (const { upstreams } of sessions) {
        assert.lengthOf(upstreams, 20)
        const turns = ["east", "west"].map((name) => upstreams.filter((each) => each === name).length)
        assert.isAtLeast(Math.max(...turns), 19)
        used.add(upstreams[0]!)
      }
      // both upstreams get sessions
      for (let id = sessions.length; used.size < 2; id++) {
        const session = newSession(id)
        await takeTurn(gateway, session)
        used.add(session.upstreams[0]!)
        assert.isBelow(id, 100)
      }
    }))
})

describe("a worker that is frozen", () => {
  /** With one slot, it keeps no open pull request that would receive the second attempt. */
  const withOneSlot = { WORKER_SLOTS: "1" }

  it("before the first byte: another worker answers; the frozen one stops its call when it wakes", async () => {
    const gateway = shared()
    const { provider } = gateway
    const frozen = await onlyWorker(withOneSlot)
    provider.behave({ kind: "silent" })
    const answer = outcomeOf(gateway.request(chat("free-chat", { stream: true })))
    const stale = await untilCall(1)
    const other = await gateway.startWorker(withOneSlot)
    frozen.freeze()
    const call = await untilCall(2)
    call.release()
    assert.deepStrictEqual(await answer, { kind: "whole" })

    frozen.thaw()
    assert.strictEqual(await stale.closed, "aborted")
    await other.terminate()
    provider.behave({ kind: "answer" })
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    await untilNoJobs(gateway.nats)
  })

  it("after the first byte: the stream ends with an error; the worker stops its call when it wakes", async () => {
    const gateway = shared()
    const { provider } = gateway
    const frozen = await onlyWorker(withOneSlot)
    provider.behaveOnce({ kind: "hold", after: 2 })
    const stream = await startStream(gateway.request(chat("free-chat", { stream: true })))
    const call = await untilCall(1)
    frozen.freeze()
    assert.deepStrictEqual(await stream.outcome(), { kind: "failed", code: "worker_lost" })
    frozen.thaw()
    assert.strictEqual(await call.closed, "aborted")
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    await untilNoJobs(gateway.nats)
  })

  it("with free slots: the jobs delivered to it go to another worker and are answered once", async () => {
    const gateway = shared()
    const other = await gateway.startWorker()
    worker.freeze()
    const answers = Array.from({ length: 20 }, () => gateway.request(chat("free-chat")).then(outcomeOf))
    const outcomes = await Promise.all(answers)
    assert.isTrue(outcomes.every(({ kind }) => kind === "whole"))
    worker.thaw()
    await untilNoJobs(gateway.nats)
    assert.lengthOf(calls(), 20)
    await other.terminate()
  })
})

describe("an ingress that is killed", () => {
  it("during streams and before their first byte: the worker ends every call and frees its slots", async () => {
    const gateway = shared()
    const { provider } = gateway
    const ingress = await gateway.startIngress()
    const request = (body: object) => gateway.request(body, { ingress })
    provider.behave({ kind: "hold", after: 2 })
    const streams = await Promise.all(
      Array.from({ length: 5 }, () => startStream(request(chat("free-chat", { stream: true }))))
    )
    provider.behave({ kind: "silent" })
    const waiting = Array.from({ length: 5 }, () => outcomeOf(request(chat("paid-chat"))))
    await untilCall(10)
    await ingress.kill()
    const ends = await Promise.all(calls().map(({ closed }) => closed))
    assert.deepStrictEqual(ends, Array.from({ length: 10 }, () => "aborted"))
    const outcomes = await Promise.all([...streams.map((stream) => stream.outcome()), ...waiting])
    assert.deepStrictEqual(outcomes.map(({ kind }) => kind), Array.from({ length: 10 }, () => "broken"))
    await untilNoJobs(gateway.nats)
  })
})
