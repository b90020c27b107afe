package dev.nereid.distribution.metrics;

import io.prometheus.metrics.instrumentation.jvm.JvmBufferPoolMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmClassLoadingMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmGarbageCollectorMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmMemoryMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmRuntimeInfoMetric;
import io.prometheus.metrics.instrumentation.jvm.JvmThreadsMetrics;
import io.prometheus.metrics.instrumentation.jvm.ProcessMetrics;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

/**
 * Metrics of the JVM and its process, by the names of Prometheus' own client library: {@code jvm_memory_used_bytes},
 * {@code jvm_gc_collection_seconds}, {@code process_cpu_seconds_total}, {@code process_open_fds} and others. Static
 * functions only.
 */
final class JvmMetrics {
    private JvmMetrics() {}

    /**
     * Returns a registry of these metrics. The details of native memory are not among them: the JVM has them only if it
     * was started for that.
     */
    static PrometheusRegistry registry() {
        PrometheusRegistry registry = new PrometheusRegistry();
        JvmMemoryMetrics.builder().register(registry);
        JvmBufferPoolMetrics.builder().register(registry);
        JvmGarbageCollectorMetrics.builder().register(registry);
        JvmThreadsMetrics.builder().register(registry);
        JvmClassLoadingMetrics.builder().register(registry);
        JvmRuntimeInfoMetric.builder().register(registry);
        ProcessMetrics.builder().register(registry);
        return registry;
    }
}
