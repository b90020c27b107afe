package dev.nereid.backend.python.environment;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.sun.management.OperatingSystemMXBean;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Parameters;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Settings of the backend from {@code --backend-config}, checked. Immutable.
 *
 * <p>The names with {@code shm}, {@code stub} and {@code thread-pool} are of the reference's backend. Shared memory
 * here has no names and no first size, so most of them are checked and have no further effect.
 *
 * @param shmDefaultByteSize {@code shm-default-byte-size}, at least 1 MiB; without effect
 * @param shmGrowthByteSize {@code shm-growth-byte-size}, the least size in bytes of a further segment of shared memory
 * @param stubTimeout {@code stub-timeout-seconds}, the time that {@code finalize} and the end of a process may take
 * @param messageQueueSize {@code shm_message_queue_size}; without effect
 * @param threadPoolSize {@code thread-pool-size}, at least 1; without effect
 * @param shmLimitByteSize {@code shm-limit-byte-size}, the most shared memory of the processes of one model in bytes;
 *     by default a quarter of the memory of the machine or container, at least 64 MiB
 * @param inlineLimit {@code inline-limit}, the largest tensor in bytes that is part of a message
 * @param executable {@code executable}, the Python for models without an environment: a path, or a name that is
 *     searched on the path; empty for {@code python3}
 * @param restartDelay {@code restart-delay}, the pause before the first restart of a process; each further one is twice
 *     as long, up to {@link #restartDelay(int)}
 * @param startTimeout {@code start-timeout}, the time for import and {@code initialize}; empty for no limit
 * @param passedVariables {@code pass-environment}, names of variables that the server reads as secrets and that
 *     processes get all the same; {@code all} for all of them
 * @param limits {@code limit-memory}, {@code limit-processor-seconds} and {@code limit-open-files}
 */
public record PythonSettings(
        long shmDefaultByteSize,
        long shmGrowthByteSize,
        Duration stubTimeout,
        long messageQueueSize,
        int threadPoolSize,
        long shmLimitByteSize,
        int inlineLimit,
        Optional<String> executable,
        Duration restartDelay,
        Optional<Duration> startTimeout,
        Set<String> passedVariables,
        ProcessLimits limits) {
    /** The value of {@code pass-environment} for all variables. */
    static final String ALL = "all";

    private static final String DEFAULT_SIZE = "shm-default-byte-size";
    private static final String GROWTH_SIZE = "shm-growth-byte-size";
    private static final String STUB_TIMEOUT = "stub-timeout-seconds";
    private static final String THREADS = "thread-pool-size";
    private static final String PREFIX = "shm-region-prefix-name";
    private static final String PASS_ENVIRONMENT = "pass-environment";
    private static final String INLINE_LIMIT = "inline-limit";
    private static final String SHM_LIMIT = "shm-limit-byte-size";

    private static final long MIB = 1 << 20;
    private static final long MIN_SHM_LIMIT = 64 * MIB;
    private static final int DEFAULT_STUB_SECONDS = 30;
    private static final int DEFAULT_QUEUE = 1000;
    private static final int DEFAULT_THREADS = 32;
    private static final int DEFAULT_INLINE_LIMIT = 16384;

    /** The largest tensor within a message, in bytes; the Python side has the same. */
    private static final int MAX_INLINE_LIMIT = 64 << 20;

    private static final Duration DEFAULT_RESTART_DELAY = Duration.ofSeconds(2);
    private static final Duration MAX_RESTART_DELAY = Duration.ofMinutes(1);
    private static final int PART_OF_MEMORY = 4;
    private static final Pattern INTEGER = Pattern.compile("[+-]?\\d{1,18}");

    public PythonSettings {
        passedVariables = Set.copyOf(passedVariables);
    }

    /**
     * Reads the settings, when the backend is created.
     *
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if a value does not fit, with the text of the
     *     reference where it has one
     */
    public static PythonSettings of(BackendContext context) {
        long memory = ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
                ? system.getTotalMemorySize()
                : 2 * Runtime.getRuntime().maxMemory();
        return of(context, memory);
    }

    /** Reads the settings for a machine with a number of bytes of memory. */
    static PythonSettings of(BackendContext context, long memory) {
        Parameters settings = context.settings();
        long defaultSize = bytes(settings, DEFAULT_SIZE, MIB);
        if (defaultSize < MIB) {
            throw refused(DEFAULT_SIZE + " can't be smaller than 4 MiBs"); // the number is the reference's
        }
        long growth = bytes(settings, GROWTH_SIZE, MIB);
        if (growth <= 0) {
            throw refused(GROWTH_SIZE + " can't be smaller than or equal to zero.");
        }
        long stubSeconds = integer(settings, STUB_TIMEOUT, DEFAULT_STUB_SECONDS);
        if (stubSeconds <= 0) {
            throw refused(STUB_TIMEOUT + " can't be smaller than or equal to zero.");
        }
        long threads = integer(settings, THREADS, DEFAULT_THREADS);
        if (threads < 1) {
            throw refused(THREADS + " can't be less than 1.");
        }
        if (settings.text(PREFIX).filter(String::isEmpty).isPresent()) {
            throw refused(PREFIX + " must at least contain one character.");
        }
        long inlineLimit = bytes(settings, INLINE_LIMIT, DEFAULT_INLINE_LIMIT);
        if (inlineLimit < 0 || inlineLimit > MAX_INLINE_LIMIT) {
            throw settings.invalid(INLINE_LIMIT, "0 to " + MAX_INLINE_LIMIT + " bytes");
        }
        long shmLimit = bytes(settings, SHM_LIMIT, Math.max(MIN_SHM_LIMIT, memory / PART_OF_MEMORY));
        if (shmLimit < MIB) {
            throw settings.invalid(SHM_LIMIT, MIB + " bytes or more");
        }
        return new PythonSettings(
                defaultSize,
                growth,
                Duration.ofSeconds(Math.min(stubSeconds, Integer.MAX_VALUE)),
                integer(settings, "shm_message_queue_size", DEFAULT_QUEUE),
                (int) Math.min(threads, Integer.MAX_VALUE),
                shmLimit,
                (int) inlineLimit,
                settings.text("executable").filter(text -> !text.isEmpty()),
                settings.duration("restart-delay", SECONDS).orElse(DEFAULT_RESTART_DELAY),
                settings.duration("start-timeout", SECONDS).filter(Duration::isPositive),
                names(settings),
                ProcessLimits.read(
                        settings, "limit-memory", "limit-processor-seconds", "limit-open-files", ProcessLimits.NONE));
    }

    /**
     * Returns the pause before a restart.
     *
     * @param restarts the number of restarts since a process has last served for a minute, 0 or more
     * @return the pause: {@link #restartDelay()}, doubled for each restart before, at most the larger of it and a
     *     minute
     */
    public Duration restartDelay(int restarts) {
        Duration most = restartDelay.compareTo(MAX_RESTART_DELAY) > 0 ? restartDelay : MAX_RESTART_DELAY;
        Duration delay = restartDelay;
        for (int i = 0; i < restarts && delay.isPositive() && delay.compareTo(most) < 0; i++) {
            delay = delay.multipliedBy(2);
        }
        return delay.compareTo(most) > 0 ? most : delay;
    }

    private static Set<String> names(Parameters settings) {
        return settings.text(PASS_ENVIRONMENT).stream()
                .flatMap(text -> Arrays.stream(text.split("[,:; ]+")))
                .filter(name -> !name.isEmpty())
                .peek(name -> {
                    if (name.contains("=")) {
                        throw settings.invalid(PASS_ENVIRONMENT, "all, or names of variables separated by ':'");
                    }
                })
                .collect(Collectors.toUnmodifiableSet());
    }

    private static long integer(Parameters settings, String name, long standard) {
        return settings.longInteger(name, Long.MIN_VALUE, Long.MAX_VALUE).orElse(standard);
    }

    /** Reads a number of bytes, which may be negative where it is a plain number. */
    private static long bytes(Parameters settings, String name, long standard) {
        boolean isPlain = settings.value(name)
                .filter(value -> value instanceof Long
                        || INTEGER.matcher(value.toString()).matches())
                .isPresent();
        return isPlain
                ? integer(settings, name, standard)
                : settings.byteSize(name).orElse(standard);
    }

    private static BackendException refused(String text) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
