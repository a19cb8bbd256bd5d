/** Clients that read endless answers slowly or not at all: they delay only themselves. */
import { assert, it } from "@effect/vitest"
import { connect } from "@nats-io/transport-node"
import { decodeBundle } from "../../../shared/bus/protocol/Bundle.ts"
import { windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { openStream } from "../../fixture/client/RawStream.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import type { NatsAddress } from "../../fixture/nats/NatsServer.ts"

const clients = 4

/** What the kernel buffers of a connection at most, on both ends: a client has taken this much without reading. */
const kernelBytes = 16 * 1024 * 1024

/** Counts the bytes of each answer on the bus. */
const countAnswerBytes = async ({ url }: NatsAddress) => {
  const connection = await connect({ servers: url, reconnect: false })
  const bytes = new Map<string, number>()
  connection.subscribe("r.>", {
    callback: (_, { data }) => {
      for (const entry of decodeBundle(data)?.entries ?? []) {
        if ("job" in entry) bytes.set(entry.job, (bytes.get(entry.job) ?? 0) + entry.payload.length)
      }
    }
  })
  await connection.flush()
  return {
    /** Resolves once this many answers have exceeded this many bytes. */
    until: (answers: number, least: number) =>
      eventually(
        () => [...bytes.values()].filter((count) => count >= least).length,
        (exceeding) => exceeding >= answers
      ),
    most: () => Math.max(...bytes.values()),
    close: () => connection.close()
  }
}

it.live("clients that do not read hold back their own answers, and delay no other client", () =>
  Gateway.runHere({}, async (gateway) => {
    const { nats, provider } = gateway
    // ingress knows the worker now, which therefore sends bundles
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    const answers = await countAnswerBytes(nats)
    // few long events, which cost less than many short ones
    provider.say("x".repeat(8_000))
    provider.behave({ kind: "endless" }, { model: "paid-chat" })
    const slow = await Promise.all(Array.from({ length: clients }, () => openStream(gateway, "paid-chat")))
    await answers.until(clients, windowBytes)

    for (const stream of [false, true]) {
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat", { stream }))), { kind: "whole" })
    }
    assert.isAtMost(answers.most(), windowBytes + kernelBytes)
    // reading makes room for as much
    const taken = windowBytes + kernelBytes
    await slow[0]?.read(taken)
    await answers.until(1, taken)
    assert.isAtMost(answers.most(), taken + windowBytes + kernelBytes)

    for (const { leave } of slow) leave()
    await provider.until(() => provider.open === 0)
    await untilNoJobs(nats)
    await answers.close()
  }))
