package dev.nereid.server.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Threads on the processors of a policy, as the operating system sees them. */
final class ThreadAffinityTest {
    private static final Path STATUS = Path.of("/proc/thread-self/status");

    @Test
    void pinsTheThreadOfAnInstance() throws InterruptedException {
        assumeThat(STATUS).exists();
        CpuSet all = allowed();
        CpuSet one = last(all);
        List<String> seen = new CopyOnWriteArrayList<>();
        ModelInstance instance = batch -> seen.add(allowed().toString());
        Instance.ThreadPlacement placement = HostPolicies.of(
                        List.of(new HostSetting("p", HostSetting.CPU_CORES, one.toString())))
                .placement("p");
        CheckedRequest request = new CheckedRequest(
                new ModelVersion("m", 1),
                "",
                RequestInputs.of(List.of(), 1, () -> {}),
                RequestOutputs.all(List.of()),
                Map.of(),
                RequestOptions.DEFAULT,
                0);
        ModelSettings model = ModelSettings.builder("m", 1).build();

        try (TimerThread timer = new TimerThread(System::nanoTime);
                LeakCheckingMemory memory = new LeakCheckingMemory();
                ModelScheduler scheduler = ModelScheduler.start(
                        new ModelPlan(model, BatchingPolicy.NONE)
                                .with(List.of(new Warmup.Sample("s", 1, () -> List.of(request)))),
                        List.of(
                                new Instance("placed", Device.CPU, instance, RateProfile.NONE, placement),
                                new Instance("free", Device.CPU, instance)),
                        new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            scheduler.awaitWarm();
        }

        assertThat(seen).containsExactlyInAnyOrder(one.toString(), all.toString());
        assertThat(allowed()).isEqualTo(all);
    }

    @Test
    void reportsWhichErrorTheSystemGives() throws InterruptedException {
        assumeThat(STATUS).exists();
        List<Optional<String>> problems = new CopyOnWriteArrayList<>();

        Thread thread = Thread.ofPlatform()
                .start(() -> problems.add(
                        ThreadAffinity.ofTheSystem().bind(CpuSet.parse("65535").orElseThrow())));
        thread.join();

        assertThat(problems).containsExactly(Optional.of("sched_setaffinity failed with error 22"));
    }

    @Test
    void warnsWhereItCannot() {
        List<String> warnings = new CopyOnWriteArrayList<>();
        HostPolicies policies = new HostPolicies(
                Map.of(
                        "p",
                        CpuSet.parse("0").orElseThrow(),
                        "q",
                        CpuSet.parse("1").orElseThrow()),
                new ThreadAffinity(name -> Optional.empty()),
                (policy, problem) -> warnings.add(policy + ": " + problem));

        policies.placement("p").place();
        policies.placement("p").place();
        policies.placement("q").place();

        String reason = ": this operating system has no sched_setaffinity";
        assertThat(warnings).containsExactly("p" + reason, "q" + reason);
    }

    private static CpuSet allowed() {
        try {
            return Files.readAllLines(STATUS).stream()
                    .filter(line -> line.startsWith("Cpus_allowed_list:"))
                    .map(line ->
                            CpuSet.parse(line.substring(line.indexOf(':') + 1)).orElseThrow())
                    .findFirst()
                    .orElseThrow();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static CpuSet last(CpuSet all) {
        String text = all.toString();
        return CpuSet.parse(text.replaceFirst(".*[-,]", "")).orElseThrow();
    }
}
