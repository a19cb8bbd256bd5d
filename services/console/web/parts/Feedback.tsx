/** States of a page without data: loading, failed, or empty. */
import { Alert, Button, Group, Skeleton, Stack, Text, ThemeIcon, Title } from "@mantine/core"
import { ExclamationTriangleIcon } from "@radix-ui/react-icons"
import type { ComponentType, ReactNode } from "react"
import { messageOf } from "../data/Client.ts"

export const Failure = ({ error, retry }: { readonly error: unknown; readonly retry: () => unknown }) => (
  <Alert color="red" icon={<ExclamationTriangleIcon />} title="Loading failed" my="md">
    <Group justify="space-between" gap="md">
      <Text size="sm">{messageOf(error)}</Text>
      <Button
        size="xs"
        variant="default"
        onClick={() =>
          void retry()}
      >
        Try again
      </Button>
    </Group>
  </Alert>
)

export const Waiting = () => (
  <Stack gap="sm" role="status" aria-busy="true" aria-label="Loading">
    {[1, 2, 3, 4].map((row) => <Skeleton key={row} height={52} radius="md" />)}
  </Stack>
)

export const Empty = ({ action, children, icon: Icon, title }: {
  readonly icon: ComponentType<{ readonly width: number; readonly height: number }>
  readonly title: string
  readonly children: ReactNode
  readonly action?: ReactNode
}) => (
  <Stack align="center" gap="sm" py={56} px="md" ta="center">
    <ThemeIcon size={52} radius="xl" variant="light" aria-hidden>
      <Icon width={22} height={22} />
    </ThemeIcon>
    <Title order={2} size="h4" mt={4}>{title}</Title>
    <Text c="dimmed" maw={440}>{children}</Text>
    {action}
  </Stack>
)

const isEmptyList = (data: unknown): boolean => Array.isArray(data) && data.length === 0

/** Renders the data of a query, `empty` if there is none, or the query's loading or error state. */
export function Loaded<A>({ children, empty, isEmpty = isEmptyList, query: { data, error, refetch } }: {
  readonly query: { readonly data: A | undefined; readonly error: unknown; readonly refetch: () => unknown }
  readonly empty?: ReactNode
  readonly isEmpty?: (data: A) => boolean
  readonly children: (data: A) => ReactNode
}) {
  if (data !== undefined) return empty !== undefined && isEmpty(data) ? empty : children(data)
  return error === null ? <Waiting /> : <Failure error={error} retry={refetch} />
}
