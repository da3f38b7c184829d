-- What wrk posts, one body after the other of a file with one on each line, and what it prints at the end.
-- Arguments: the file.
local bodies, count = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    bodies[#bodies + 1] = line
  end
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  count = count + 1
  return wrk.format("POST", nil, nil, bodies[count % #bodies + 1])
end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    '{"rate": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d, "bytes": %d, "requests": %d}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    summary.bytes, summary.requests))
end
