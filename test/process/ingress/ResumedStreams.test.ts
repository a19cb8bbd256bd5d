/**
 * Responses in the background that OpenAI's client streams from an ingress which is killed: on another ingress it gets the rest, so
 * that it has every event exactly once. `RESUMED_STREAMS` says how many streams, 8 of them for each ingress.
 */
import { assert, it } from "@effect/vitest"
import OpenAI from "openai"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import type { Service } from "../../fixture/gateway/Service.ts"
import type { ServiceProcess } from "../../fixture/gateway/ServiceProcess.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"

type Event = OpenAI.Responses.ResponseStreamEvent

const count = Number(process.env["RESUMED_STREAMS"] ?? 16)
const perIngress = 8

/** How many words an answer has, and how many events of the provider come before its ingress is killed. */
const words = 60
const eventsBefore = (index: number): number => 5 + index * 7

const client = (key: string, { url }: Service) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 })

const numbersOf = (events: ReadonlyArray<Event>) => events.map(({ sequence_number }) => sequence_number)

it.live(
  "a stream goes on at another ingress after the event that the client has, and no event is missing or repeated",
  () =>
    Gateway.runHere({}, async (gateway) => {
      const { ingress: survivor, key, provider } = gateway
      provider.say(Array.from({ length: words }, (_, index) => `word-${index}`).join(" "))

      /** Reads until the ingress is killed, and then from the other one. `reached` runs when the text has begun. */
      const stream = async (victim: ServiceProcess, reached: () => void, killed: Promise<void>) => {
        let hasText = false
        const before: Array<Event> = []
        const create = { model: "free-chat", input: "Speak.", background: true, stream: true } as const
        try {
          for await (const event of await client(key, victim).responses.create(create)) {
            before.push(event)
            if (event.type === "response.output_text.delta" && !hasText) {
              hasText = true
              reached()
            }
          }
          assert.fail("the stream ended before its ingress died")
        } catch (error) {
          await killed
          assert.instanceOf(error, TypeError)
        }
        const [first] = before
        assert(first?.type === "response.created")
        const { id } = first.response
        const after: Array<Event> = []
        const last = before.at(-1)?.sequence_number ?? assert.fail("no event")
        const rest = await client(key, survivor).responses.retrieve(id, { stream: true, starting_after: last })
        for await (const event of rest) after.push(event)
        const whole: Array<Event> = []
        for await (const event of await client(key, survivor).responses.retrieve(id, { stream: true })) {
          whole.push(event)
        }
        return { before, after, whole }
      }

      for (let done = 0; done < count; done += perIngress) {
        const victim = await startProcess(gateway, "ingress")
        let waiting = perIngress
        let kill = () => {}
        const killed = new Promise<void>((resolve) => kill = resolve).then(() => victim.kill())
        provider.behaveOnce(
          ...Array.from({ length: perIngress }, (_, index) => ({ kind: "hold", after: eventsBefore(index) } as const))
        )
        const streams = Array.from({ length: perIngress }, () =>
          stream(victim, () => {
            if (--waiting === 0) kill()
          }, killed))
        await killed
        provider.release()
        const results = await Promise.all(streams)
        for (const { after, before, whole } of results) {
          const all = [...before, ...after]
          assert.deepStrictEqual(numbersOf(all), all.map((_, index) => index))
          assert.deepStrictEqual(all, whole)
          assert.isNotEmpty(after)
          assert.strictEqual(all.at(-1)?.type, "response.completed")
          assert.lengthOf(all.filter(({ type }) => type === "response.output_text.delta"), words)
        }
      }
      assert.strictEqual(provider.requests.length, Math.ceil(count / perIngress) * perIngress)
    }),
  // longer only with more streams than usual
  120_000 + Math.max(0, count - 16) * 4_000
)
