package dev.nereid.distribution.flags;

import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.options.SchedulingOptions;
import dev.nereid.server.options.ServerOptions;
import java.util.OptionalLong;

/** Flags of admission: limits of requests and bytes in flight. Written by the command line reader, then only read. */
final class AdmissionFlags {
    long requests = SchedulingOptions.defaultMaxRequests();
    OptionalLong bytes = OptionalLong.empty();
    long modelRequests;
    long modelBytes;

    void declare(Flags flags) {
        flags.add("--max-inflight-requests", FlagValue.AMOUNT, v -> requests = v)
                .help("How many requests may be in flight at a time, to all models together: received and not yet"
                        + " completed. More are refused at once with 503 or UNAVAILABLE and a retry time. 0: any"
                        + " number. Default: one for each 16 KiB of the largest heap, at most 100000.");
        flags.add("--max-inflight-bytes", FlagValue.AMOUNT_OF_BYTES, v -> bytes = OptionalLong.of(v))
                .help("How many bytes the inputs of the requests in flight may have, those to all models together. 0:"
                        + " as many as there is memory for. Default: three quarters of"
                        + " --tensor-memory-pool-byte-size.");
        flags.add("--model-max-inflight-requests", FlagValue.AMOUNT, modelRequests, v -> modelRequests = v)
                .help("How many requests may be in flight to each version of a model. 0: any number.");
        flags.add("--model-max-inflight-bytes", FlagValue.AMOUNT_OF_BYTES, modelBytes, v -> modelBytes = v)
                .help("How many bytes the inputs of the requests in flight to each version of a model may have. 0:"
                        + " any number.");
    }

    void set(ServerOptions.Builder options, TensorMemoryBound memory) {
        options.limits(requests, inFlightBytes(memory));
        options.modelLimits(modelRequests, modelBytes);
    }

    long inFlightBytes(TensorMemoryBound memory) {
        return bytes.orElse(memory.inFlightBytes());
    }
}
