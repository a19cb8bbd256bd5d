/** The parts of a pod in the API that the stand-in for a kubelet reads. */
import type { Container } from "../../fixture/deploy/Pods.ts"

interface Volume {
  readonly name: string
  readonly configMap?: { readonly name: string }
  readonly secret?: { readonly secretName: string }
  readonly persistentVolumeClaim?: { readonly claimName: string }
}

export interface PodContainer extends Container {
  readonly name: string
  readonly volumeMounts?: ReadonlyArray<{ readonly name: string; readonly mountPath: string }>
}

export interface ApiPod {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly labels?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
    readonly deletionGracePeriodSeconds?: number
  }
  readonly spec: {
    readonly nodeName?: string
    readonly restartPolicy?: string
    readonly terminationGracePeriodSeconds?: number
    readonly containers: ReadonlyArray<PodContainer>
    readonly volumes?: ReadonlyArray<Volume>
  }
  readonly status?: { readonly phase?: string }
}

export const pathOf = ({ metadata: { name, namespace } }: ApiPod): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`

/** The value of `app.kubernetes.io/component`, or the pod's name. */
export const componentOf = ({ metadata: { labels, name } }: ApiPod): string =>
  labels?.["app.kubernetes.io/component"] ?? name
