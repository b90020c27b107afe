package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class InstanceTest {
    private final FakeDeviceMemory gpu = new FakeDeviceMemory(new MemoryPlace(MemoryPlace.Kind.GPU, 0));

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu);

    private final List<String> events = new ArrayList<>();
    private final ModelInstance backend = _ -> events.add("execute");

    @Test
    void failsExecutionsWhenItsGpuHasFailed() {
        Instance onGpu = new Instance(
                "m_0",
                new Device(Device.Kind.GPU, 0),
                Optional.of(gpu),
                backend,
                RateProfile.NONE,
                Instance.ThreadPlacement.ANYWHERE,
                new InstanceAvailability(),
                backend::close);
        Instance onCpu = new Instance("m_1", Device.CPU, backend);
        assertThat(onGpu.checkReady()).isCompleted();

        gpu.fail("GPU 0 has failed: of a test");

        assertThat(onGpu.checkReady()).isCompletedExceptionally();
        assertThat(onCpu.checkReady()).isCompleted();
        try (FakeBatch batch =
                new FakeBatch(ModelSettings.builder("m", 1).build(), memory, new FakeRequest(1, List.of()))) {
            assertThat(onGpu.execute(batch, false))
                    .isInstanceOfSatisfying(
                            BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                    .hasMessage("GPU 0 has failed: of a test");
            assertThat(events).isEmpty();
            assertThat(onCpu.execute(batch, false)).isNull();
        }
        assertThat(events).containsExactly("execute");
        onGpu.close();
        onCpu.close();
    }
}
