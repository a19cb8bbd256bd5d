/** What the manifests say of pods and of what is around them, as far as tests look at it. */
import type { Document } from "./Manifests.ts"

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string | number }
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
}

export interface Container {
  readonly image: string
  readonly args: ReadonlyArray<string>
  readonly env?: ReadonlyArray<{
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } }
  }>
  readonly envFrom?: ReadonlyArray<{
    readonly configMapRef?: { readonly name: string }
    readonly secretRef?: { readonly name: string }
  }>
  readonly ports?: ReadonlyArray<{ readonly name: string; readonly containerPort: number }>
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  readonly resources: { readonly limits: object; readonly requests: object }
  readonly securityContext: object
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number
  readonly automountServiceAccountToken?: boolean
  readonly securityContext: object
  readonly containers: ReadonlyArray<Container>
  readonly volumes: ReadonlyArray<{
    readonly configMap?: { readonly name: string }
    readonly secret?: { readonly secretName: string }
  }>
}

/** A Deployment or a Job. */
export interface Running extends Document {
  readonly spec: {
    readonly minReadySeconds?: number
    readonly strategy?: { readonly rollingUpdate: { readonly maxSurge: number; readonly maxUnavailable: number } }
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: PodSpec
    }
  }
}

export interface Selecting extends Document {
  readonly spec: {
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>
    readonly podSelector?: { readonly matchLabels?: Readonly<Record<string, string>> }
    readonly ports?: ReadonlyArray<{ readonly targetPort: string }>
  }
}

/** What Prometheus scrapes. */
export interface PodMonitor extends Document {
  readonly spec: { readonly podMetricsEndpoints: ReadonlyArray<{ readonly port: string }> }
}

export interface NetworkPolicy extends Document {
  readonly spec: {
    readonly podSelector: { readonly matchLabels?: Readonly<Record<string, string>> }
    readonly policyTypes: ReadonlyArray<string>
    readonly ingress?: ReadonlyArray<{
      readonly from?: ReadonlyArray<unknown>
      readonly ports?: ReadonlyArray<{ readonly port: number }>
    }>
    readonly egress?: ReadonlyArray<{
      readonly to?: ReadonlyArray<{
        readonly ipBlock?: { readonly cidr: string; readonly except: ReadonlyArray<string> }
      }>
    }>
  }
}

export interface ScaledObject extends Document {
  readonly spec: {
    readonly minReplicaCount: number
    readonly scaleTargetRef: { readonly name: string }
    readonly triggers: ReadonlyArray<{ readonly metadata: Readonly<Record<string, string>> }>
  }
}

export interface ConfigMap extends Document {
  readonly data: Readonly<Record<string, string>>
}

/** A kind of pod, with what comes together from several places. */
export interface Pod {
  readonly name: string
  readonly running: Running
  readonly spec: PodSpec
  readonly container: Container
  readonly labels: Readonly<Record<string, string>>
  /** Its variables but for those that come from secrets. */
  readonly environment: ReadonlyMap<string, string>
  /** The secrets that it is handed, and the ConfigMaps. */
  readonly secrets: ReadonlyArray<string>
  readonly configMaps: ReadonlyArray<string>
}

export const of = (documents: ReadonlyArray<Document>): ReadonlyArray<Pod> => {
  const data = new Map(
    documents.filter(({ kind }) => kind === "ConfigMap").map((one) => [one.metadata.name, (one as ConfigMap).data])
  )
  return documents.filter(({ kind }) => kind === "Deployment" || kind === "Job").map((document) => {
    const running = document as Running
    const { metadata, spec } = running.spec.template
    const [container] = spec.containers
    if (container === undefined) throw new Error(`${document.metadata.name} has no container`)
    const { env = [], envFrom = [] } = container
    const fromMaps = envFrom.flatMap(({ configMapRef }) => Object.entries(data.get(configMapRef?.name ?? "") ?? {}))
    return {
      name: document.metadata.name,
      running,
      spec,
      container,
      labels: metadata.labels,
      environment: new Map([
        ...fromMaps,
        ...env.flatMap(({ name, value }) => value === undefined ? [] : [[name, value] as const])
      ]),
      secrets: [
        ...env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []),
        ...envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []),
        ...spec.volumes.flatMap(({ secret }) => secret?.secretName ?? [])
      ],
      configMaps: [
        ...envFrom.flatMap(({ configMapRef }) => configMapRef?.name ?? []),
        ...spec.volumes.flatMap(({ configMap }) => configMap?.name ?? [])
      ]
    }
  })
}
