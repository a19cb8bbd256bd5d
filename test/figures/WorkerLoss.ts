/** The time until a dead or frozen worker is replaced: until another one has called the provider. */
import { chat, outcomeOf } from "../fixture/client/ChatClient.ts"
import type { Gateway, ServiceProcess } from "../fixture/gateway/Gateway.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"

/** The time in milliseconds. Each call fails another worker. */
export const timeToReplace = async (
  gateway: Gateway<NatsAddress>,
  end: (worker: ServiceProcess) => unknown
): Promise<number> => {
  gateway.provider.behaveOnce({ kind: "silent" })
  const answer = outcomeOf(gateway.request(chat("free-chat")))
  await gateway.provider.nextRequest()
  const victim = gateway.workers.at(-1)
  if (victim === undefined) throw new Error("no worker is running")
  await gateway.startWorker()
  const from = performance.now()
  await end(victim)
  await gateway.provider.nextRequest()
  const tookMs = performance.now() - from
  await answer
  await victim.kill()
  return tookMs
}
