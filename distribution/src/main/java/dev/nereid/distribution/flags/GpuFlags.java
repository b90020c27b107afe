package dev.nereid.distribution.flags;

import dev.nereid.cuda.memory.CudaGpus;
import dev.nereid.cuda.memory.GpuOptions;
import dev.nereid.server.instance.GpuLoadLimits;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/** Flags of GPUs and their memory. Written by the command line reader, then only read. */
final class GpuFlags {
    private static final Logger LOG = LoggerFactory.getLogger(GpuFlags.class);
    private static final Pattern GPU_AND_BYTES = Pattern.compile("(\\d{1,5}):(\\d{1,18})");
    private static final Pattern GPU_AND_FRACTION = Pattern.compile("(\\d{1,5}):(\\d{0,9}\\.?\\d{1,9})");
    private static final Pattern VERSION = Pattern.compile("(\\d{1,4})(?:\\.(\\d{1,4}))?");

    private static final FlagValue<Map.Entry<Integer, Long>> BYTES_OF_GPU = new FlagValue<>(
            "GPU:BYTES",
            "the number of a GPU, a colon and a number of bytes, as in 0:67108864",
            text -> Optional.of(GPU_AND_BYTES.matcher(text))
                    .filter(Matcher::matches)
                    .map(match -> Map.entry(Integer.parseInt(match.group(1)), Long.parseLong(match.group(2)))));

    private static final FlagValue<Map.Entry<Integer, Double>> FRACTION_OF_GPU = new FlagValue<>(
            "GPU:FRACTION",
            "the number of a GPU, a colon and a fraction, as in 0:0.8",
            text -> Optional.of(GPU_AND_FRACTION.matcher(text))
                    .filter(Matcher::matches)
                    .map(match -> Map.entry(Integer.parseInt(match.group(1)), Double.parseDouble(match.group(2)))));

    private static final FlagValue<int[]> CAPABILITY = new FlagValue<>(
            "N",
            "a version, as in 6.0",
            text -> Optional.of(VERSION.matcher(text)).filter(Matcher::matches).map(match -> new int[] {
                Integer.parseInt(match.group(1)), match.group(2) == null ? 0 : Integer.parseInt(match.group(2))
            }));

    private final Map<Integer, Long> poolBytes = new HashMap<>();
    private final Map<Integer, Double> loadLimits = new HashMap<>();
    private long pinnedBytes = GpuOptions.DEFAULT.pinnedBytes();
    private int minMajor = GpuOptions.DEFAULT.minMajor();
    private int minMinor = GpuOptions.DEFAULT.minMinor();
    private boolean peerAccess = GpuOptions.DEFAULT.peerAccess();

    void declare(Flags flags) {
        flags.add("--pinned-memory-pool-byte-size", FlagValue.AMOUNT_OF_BYTES, pinnedBytes, v -> pinnedBytes = v)
                .help("How much pinned memory of the host is taken at the start, for copies to and from GPUs. Where"
                        + " it runs out, ordinary memory is used. None is taken without a GPU.");
        flags.add(
                        "--cuda-memory-pool-byte-size",
                        BYTES_OF_GPU,
                        value -> poolBytes.put(value.getKey(), value.getValue()))
                .help("How much memory of a GPU is taken at the start, for tensors and instances. May be given"
                        + " several times. Default: 67108864 of each.");
        flags.add("--model-load-gpu-limit", FRACTION_OF_GPU, value -> loadLimits.put(value.getKey(), value.getValue()))
                .help("The fraction of the memory of a GPU beyond which models are not loaded on it: a load fails if"
                        + " more is in use after it. May be given several times. Default: no limit.");
        flags.add("--min-supported-compute-capability", CAPABILITY, value -> {
                    minMajor = value[0];
                    minMinor = value[1];
                })
                .help("The lowest compute capability of GPUs that are used. Default: 6.0.");
        flags.add("--enable-peer-access", FlagValue.TRUTH, peerAccess, v -> peerAccess = v)
                .help("Whether GPUs may access the memory of others.");
    }

    /** Returns the limits of the memory of GPUs that is in use after a load. */
    GpuLoadLimits loadLimits() {
        return new GpuLoadLimits(loadLimits);
    }

    /** Finds the GPUs, takes their memory, and logs the findings. */
    CudaGpus open() {
        CudaGpus gpus = CudaGpus.open(new GpuOptions(pinnedBytes, poolBytes, minMajor, minMinor, peerAccess));
        // Most machines have no GPU, and their operators need not learn that at each start.
        Level level = gpus.numbers().isEmpty() && gpus.report().size() == 1 ? Level.DEBUG : Level.INFO;
        gpus.report().forEach(line -> LOG.atLevel(level).log("{}", line));
        return gpus;
    }
}
