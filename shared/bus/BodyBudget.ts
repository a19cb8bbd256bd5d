/** How much memory the bodies of an ingress's open jobs may hold together, and those of one tenant: half of it. */
import type { JobRequest } from "./JobRequest.ts"

type Body = Pick<JobRequest, "body" | "tenant">

export class BodyBudget {
  readonly #bytes: number
  #used = 0
  readonly #usedBy = new Map<string, number>()

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  hasRoomFor({ body, tenant }: Body): boolean {
    const own = this.#usedBy.get(tenant) ?? 0
    return body.length <= Math.min(this.#bytes - this.#used, this.#bytes / 2 - own)
  }

  add(job: Body): void {
    this.#count(job.tenant, job.body.length)
  }

  remove(job: Body): void {
    this.#count(job.tenant, -job.body.length)
  }

  #count(tenant: string, bytes: number): void {
    this.#used += bytes
    const own = (this.#usedBy.get(tenant) ?? 0) + bytes
    if (own === 0) this.#usedBy.delete(tenant)
    else this.#usedBy.set(tenant, own)
  }
}
