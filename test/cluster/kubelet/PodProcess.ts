/** The process of a pod, as the stand-in for a kubelet sees it. */
import { join } from "node:path"
import { RunningPod } from "../../fixture/deploy/Kubelet.ts"
import { type ApiPod, componentOf } from "./ApiPod.ts"
import type { Inputs } from "./PodInputs.ts"

export interface PodProcess {
  /** The last result of its readiness probe. */
  readonly ready: boolean
  /** All its output. */
  readonly log: string
  /** Where it accepts clients. */
  readonly port: number
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>
  /** Ends it within its grace period, if it has not ended. */
  readonly end: () => Promise<void>
  /** Ends it at once. */
  readonly kill: () => Promise<void>
}

/** Variables whose values are paths in the pod. */
const paths = ["GATEWAY_CONFIG", "NATS_CA"]

/** Runs a service of the gateway from its bundle. `natsUrl` replaces the address inside the cluster. */
export const startService = async (pod: ApiPod, { place, variables }: Inputs, natsUrl: string): Promise<PodProcess> => {
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error(`${pod.metadata.name} has no container`)
  const { env: _, envFrom: __, ...rest } = container
  const moved = Object.fromEntries(paths.flatMap((name) => {
    const path = variables[name]
    return path === undefined ? [] : [[name, place(path)]]
  }))
  const process = await RunningPod.start(
    {
      name: pod.metadata.name,
      environment: new Map(Object.entries(variables)),
      container: rest,
      spec: pod.spec
    },
    {
      environment: () => ({
        ...moved,
        NATS_URL: natsUrl,
        HOST: "127.0.0.1",
        HEALTH_HOST: "127.0.0.1",
        // where the image has it
        CONSOLE_WEB: join(import.meta.dirname, "../../../services/console/web/dist"),
        // there is no collector
        OTEL_SDK_DISABLED: "true"
      }),
      secret: () => "",
      secrets: () => ({})
    }
  )
  return Object.assign(process, {
    end: async () => {
      await process.terminate()
    }
  })
}

/** Whether a pod runs a server of NATS. All others run services of the gateway. */
export const isNats = (pod: ApiPod): boolean => componentOf(pod).startsWith("nats")
