/** The ids of responses. The gateway makes its own, since no client can ask a provider for a response. */

const prefix = "resp_"
const pattern = /^resp_[0-9a-f]{32}$/

export const newResponseId = (): string => ofSuffix(crypto.randomUUID().replaceAll("-", ""))

export const isResponseId = (id: string): boolean => pattern.test(id)

/** The part of an id that the ids of the response's items repeat: 32 hexadecimal digits. */
export const suffixOf = (id: string): string => id.slice(prefix.length)

export const ofSuffix = (suffix: string): string => `${prefix}${suffix}`
