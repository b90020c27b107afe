-- Posts one body, read from a file before the first request, and prints the outcome as a line of numbers.
-- Arguments: the file, and the length of the JSON part of the body; 0 if the body is JSON alone.

function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  if args[2] == "0" then
    wrk.headers["Content-Type"] = "application/json"
  else
    wrk.headers["Content-Type"] = "application/octet-stream"
    wrk.headers["Inference-Header-Content-Length"] = args[2]
  end
  file:close()
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("outcome %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
end
