-- Posts bodies in turn, and prints the outcome as a line of numbers. Arguments: a file with all bodies one behind the
-- other; the text in them over which a number is written each time, - for none; then for each body its length and the
-- length of its JSON part.

local threads = 0

function setup(thread)
  thread:set("count", threads * 1e12)
  threads = threads + 1
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  before, after = {}, {}
  for i = 3, #args, 2 do
    local request = wrk.format("POST", nil, {
      ["Host"] = wrk.headers["Host"],
      ["Content-Type"] = "application/octet-stream",
      ["Inference-Header-Content-Length"] = args[i + 1]
    }, file:read(tonumber(args[i])))
    local from, to = request:find(args[2], 1, true)
    local n = #before + 1
    if args[2] == "-" then
      before[n], after[n] = request, false
    else
      before[n], after[n] = request:sub(1, from - 1), request:sub(to + 1)
    end
  end
  file:close()
end

function request()
  count = count + 1
  local n = count % #before + 1
  if after[n] then
    return before[n] .. string.format("%016.0f", count) .. after[n]
  end
  return before[n]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("outcome %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
end
