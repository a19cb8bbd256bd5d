/** Clients that read endless answers slowly or not at all: how much of them the gateway holds. */
import { assert, it } from "@effect/vitest"
import { connect as connectNats } from "@nats-io/transport-node"
import { decodeBundle } from "../../../shared/bus/protocol/Bundle.ts"
import { parseReply } from "../../../shared/bus/protocol/Subjects.ts"
import { windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { inspect, inspectable } from "../../fixture/gateway/Inspector.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import type { NatsAddress } from "../../fixture/nats/NatsServer.ts"
import { openStream } from "../../fixture/client/RawStream.ts"

const clients = 8

/** What the kernel buffers of a connection at most, on both ends: a client has taken this much without reading. */
const kernelBytes = 16 * 1024 * 1024

const frameOf = (subject: string, payload: Uint8Array) => ({ job: parseReply(subject).job, payload })

/** Counts the bytes of each answer on the bus. */
const countAnswerBytes = async (nats: NatsAddress) => {
  const connection = await connectNats({ servers: nats.url, reconnect: false })
  const bytes = new Map<string, number>()
  connection.subscribe("r.>", {
    callback: (_, { data, subject }) => {
      // what is no bundle is a frame of version 2
      for (const entry of decodeBundle(data)?.entries ?? [frameOf(subject, data)]) {
        if ("job" in entry) bytes.set(entry.job, (bytes.get(entry.job) ?? 0) + entry.payload.length)
      }
    }
  })
  await connection.flush()
  const most = () => Math.max(0, ...bytes.values())
  return {
    most,
    /** Resolves after two seconds without further bytes: on a busy machine a process may pause for one. */
    untilStill: async () => {
      for (let before = -1; before !== most();) {
        before = most()
        await new Promise((resolve) => setTimeout(resolve, 2_000))
      }
      return most()
    },
    close: () => connection.close()
  }
}

it.live(
  "clients that do not read hold at most their windows",
  () =>
    Gateway.run({ environment: inspectable }, async (gateway) => {
      const { nats, processes, provider } = gateway
      const memory = async () => {
        const held = await Promise.all(processes.map(inspect))
        return held.reduce((sum, { heapMb }) => sum + heapMb, 0)
      }
      const answers = await countAnswerBytes(nats)
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
      const before = await memory()
      provider.behave({ kind: "endless" }, { model: "paid-chat" })
      const slow = await Promise.all(Array.from({ length: clients }, () => openStream(gateway, "paid-chat")))
      const held = await answers.untilStill()
      const grownMb = await memory() - before
      console.log(
        `${(held / 1024 / 1024).toFixed(1)} MiB of an answer on its way, ${grownMb.toFixed(0)} MB for ${clients}`
      )
      assert.isAtMost(held, windowBytes + kernelBytes)
      // a window at ingress, one more in frames being built and parsed, and code compiled meanwhile
      assert.isAtMost(grownMb, clients * 3 * windowBytes / 1e6 + 12)

      for (const stream of [false, true]) {
        assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat", { stream }))), { kind: "whole" })
      }
      // reading frees as much room as was read; meanwhile the kernel may enlarge its buffers
      const taken = 2 * windowBytes
      await Promise.all(slow.map(({ read }) => read(taken)))
      const after = await answers.untilStill()
      assert.isAbove(after, held)
      assert.isAtMost(after, taken + windowBytes + kernelBytes)

      for (const { leave } of slow) leave()
      await eventually(() => Promise.resolve(provider.open), (open) => open === 0)
      await untilNoJobs(nats)
      await answers.close()
    })
)
