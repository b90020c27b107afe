package dev.nereid.backend.tensorflow.graph;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.InvalidProtocolBufferException;
import org.junit.jupiter.api.Test;
import org.tensorflow.proto.ConfigProto;

/** Tests the configuration of a session as TensorFlow reads it. */
class SessionConfigTest {
    private static ConfigProto read(SessionConfig config) throws InvalidProtocolBufferException {
        return ConfigProto.parseFrom(config.serialized());
    }

    @Test
    void runsOnTheCallingThread() throws InvalidProtocolBufferException {
        ConfigProto simple = read(new SessionConfig(Executor.SINGLE_THREADED, 3, 0, false, true));
        ConfigProto any = read(new SessionConfig(Executor.CALLING_THREAD, 3, 0, false, true));

        assertThat(simple.getIntraOpParallelismThreads()).isEqualTo(3);
        assertThat(simple.getInterOpParallelismThreads()).isNegative();
        assertThat(simple.getExperimental().getExecutorType()).isEqualTo("SINGLE_THREADED_EXECUTOR");
        assertThat(any.getInterOpParallelismThreads()).isNegative();
        assertThat(any.getExperimental().getExecutorType()).isEmpty();
    }

    @Test
    void hasAPoolOfItsOwnOrThatOfTheProcess() throws InvalidProtocolBufferException {
        ConfigProto own = read(new SessionConfig(Executor.THREAD_POOL, 3, 5, false, true));
        ConfigProto shared = read(new SessionConfig(Executor.THREAD_POOL, 3, 0, false, true));

        assertThat(own.getInterOpParallelismThreads()).isEqualTo(5);
        assertThat(own.getUsePerSessionThreads()).isTrue();
        assertThat(shared.getInterOpParallelismThreads()).isZero();
        assertThat(shared.getUsePerSessionThreads()).isFalse();
    }

    @Test
    void usesGpusOnlyWhereInstancesAreOnThem() throws InvalidProtocolBufferException {
        ConfigProto cpu = read(new SessionConfig(Executor.THREAD_POOL, 3, 0, false, true));
        ConfigProto gpu = read(new SessionConfig(Executor.THREAD_POOL, 3, 0, true, false));

        assertThat(cpu.getDeviceCountMap()).containsEntry("GPU", 0);
        assertThat(cpu.getAllowSoftPlacement()).isTrue();
        assertThat(gpu.getDeviceCountMap()).isEmpty();
        assertThat(gpu.getAllowSoftPlacement()).isFalse();
        assertThat(gpu.getGpuOptions().getAllowGrowth()).isTrue();
    }
}
