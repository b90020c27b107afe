-- Posts one body, and prints how many requests were sent in each tenth of a second since a point in time, as a line of
-- numbers behind the outcome. Arguments: the file of the body, the length of its JSON part, the point in time in seconds
-- since 1970, and the number of tenths.

local ffi = require("ffi")
ffi.cdef [[
  struct moment { long seconds; long micros; };
  int gettimeofday(struct moment *, void *);
]]

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  posted = wrk.format("POST", nil, {
    ["Host"] = wrk.headers["Host"],
    ["Content-Type"] = "application/octet-stream",
    ["Inference-Header-Content-Length"] = args[2]
  }, file:read("*a"))
  file:close()
  start = tonumber(args[3])
  sent = {}
  for i = 1, tonumber(args[4]) do
    sent[i] = 0
  end
  now = ffi.new("struct moment")
end

function request()
  ffi.C.gettimeofday(now, nil)
  local tenth = math.floor((tonumber(now.seconds) - start + tonumber(now.micros) * 1e-6) * 10) + 1
  if sent[tenth] then
    sent[tenth] = sent[tenth] + 1
  end
  return posted
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("outcome %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
  local all = {}
  for _, thread in ipairs(threads) do
    for i, count in ipairs(thread:get("sent")) do
      all[i] = (all[i] or 0) + count
    end
  end
  io.write("tenths ", table.concat(all, " "), "\n")
end
