package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import java.util.List;
import org.junit.jupiter.api.Test;

final class FakeInstanceContextTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    @Test
    void allocatesCheckedMemory() {
        FakeDeviceMemory device = new FakeDeviceMemory(GPU);
        LeakCheckingMemory memory = new LeakCheckingMemory(100, device);
        InstanceContext context = new FakeInstanceContext("i", Device.CPU, List.of(), memory);

        AllocatedMemory host = context.allocate(MemoryPlace.HOST, 60);
        AllocatedMemory other = context.allocate(GPU, 8);
        assertThatExceptionOfType(AssertionError.class).isThrownBy(memory::close);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.allocate(MemoryPlace.HOST, 60))
                .withMessageStartingWith("out of memory");
        assertThat(other.place()).isEqualTo(GPU);
        host.close();
        host.close();
        other.close();

        memory.close();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.allocate(new MemoryPlace(MemoryPlace.Kind.GPU, 1), 8))
                .matches(e -> e.code() == ErrorCode.UNSUPPORTED);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> context.allocate(MemoryPlace.HOST, -1))
                .withMessage("byteSize: -1 (expected: >= 0)");
    }

    @Test
    void recordsWhyTheInstanceTakesNoWork() {
        FakeInstanceContext context = new FakeInstanceContext("i");
        assertThat(context.unavailability().get()).isEmpty();

        context.unavailable("process is started");
        context.unavailable("process is started again");
        assertThat(context.unavailability().get()).contains("process is started again");
        context.failing("process does not start");
        assertThat(context.unavailability().get()).contains("process does not start");

        context.available();
        assertThat(context.unavailability().get()).isEmpty();
    }
}
