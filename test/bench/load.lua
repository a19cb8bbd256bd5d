-- What wrk sends in a round, and the round's result as one line of JSON.
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer " .. os.getenv("LOAD_KEY")
wrk.body = os.getenv("LOAD_BODY")

done = function(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"answers":%d,"failures":%d,"seconds":%.6f,"p50Millis":%.3f,"p99Millis":%.3f}',
    summary.requests,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3
  ))
end
