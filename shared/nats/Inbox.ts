/** The subject prefix for answers to a service's requests; no other service may subscribe to it. */
export const inboxPrefix = (service: string): string => `_INBOX.${service}`
