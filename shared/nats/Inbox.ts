/** Where a service receives answers to its requests: a subject prefix of its own, which no other service may subscribe to. */
export const inboxPrefix = (service: string): string => `_INBOX.${service}`
