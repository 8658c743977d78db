import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;

/**
 * Computes the only partition of an RDD of Arrow batches on the calling thread, as an executor's task would, with
 * different rows in each run. A run loads the inputs, then computes the shared frames, then the result.
 */
public final class DriverTask {
    private static long attempts = 0;

    private final Properties settings;
    private final List inputs = new ArrayList();
    private final List shared = new ArrayList();
    private RDD batches;
    private Thread runner;
    private TaskContextImpl running;

    public DriverTask(Properties settings) {
        this.settings = settings;
    }

    /** Add an input; returns the frame to plan with. */
    public Dataset input(SparkSession session, String schema) {
        Rows rows = new Rows(session.sparkContext(), (StructType) StructType.fromJson(schema), null);
        inputs.add(rows);
        return rows.frame(session);
    }

    /** The same frame, with each of its unions in one partition: what needs all rows of a group then has them. */
    public Dataset inOnePartition(SparkSession session, Dataset frame) {
        return Dataset.ofRows(session, (LogicalPlan) frame.queryExecution().analyzed().transformUp(new MergeUnions()));
    }

    /** The frame to use instead of another one so that its rows are computed once per run. */
    public Dataset share(SparkSession session, Dataset frame) {
        Rows rows = new Rows(session.sparkContext(), frame.schema(), frame.queryExecution().toRdd());
        shared.add(rows);
        return rows.frame(session);
    }

    /** Set the RDD to compute. */
    public void result(RDD arrowBatches) {
        batches = arrowBatches;
    }

    /** The result for a batch per input; in both byte arrays, each batch has its length before it. */
    public byte[] run(byte[] inputBatches) throws Exception {
        long attempt;
        synchronized (DriverTask.class) {
            attempt = --attempts;
        }
        TaskMemoryManager memory = new TaskMemoryManager(SparkEnv.get().memoryManager(), attempt);
        TaskContextImpl context = new TaskContextImpl(
            0, 0, 0, attempt, 0, 1, memory, settings, null, new TaskMetrics(), 1,
            scala.collection.immutable.Map$.MODULE$.empty());
        TaskContext$.MODULE$.setTaskContext(context);
        synchronized (this) {
            runner = Thread.currentThread();
            running = context;
        }
        try {
            ByteBuffer rest = ByteBuffer.wrap(inputBatches);
            for (int i = 0; i < inputs.size(); i++) {
                byte[] batch = new byte[rest.getInt()];
                rest.get(batch);
                ((Rows) inputs.get(i)).load(batch, context);
            }
            for (int i = 0; i < shared.size(); i++) {
                ((Rows) shared.get(i)).fill(context);
            }
            return encoded(batches.iterator(batches.partitions()[0], context));
        } finally {
            synchronized (this) {
                runner = null;
                Thread.interrupted();
            }
            try {
                context.markTaskCompleted(scala.Option.empty());
            } finally {
                memory.cleanUpAllAllocatedMemory();
                TaskContext$.MODULE$.unset();
            }
        }
    }

    /** Cancel the run, if there is one, as an executor does: operators look for it between two rows. */
    public synchronized void cancel() {
        if (runner != null) {
            running.markInterrupted("cancelled");
            runner.interrupt();
        }
    }

    private static byte[] encoded(scala.collection.Iterator found) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        while (found.hasNext()) {
            byte[] batch = (byte[]) found.next();
            out.writeInt(batch.length);
            out.write(batch);
        }
        return bytes.toByteArray();
    }

    private static final class MergeUnions extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object plan) {
            return plan instanceof Union;
        }

        public Object applyOrElse(Object plan, scala.Function1 otherwise) {
            return isDefinedAt(plan) ? new Repartition(1, false, (LogicalPlan) plan) : otherwise.apply(plan);
        }
    }

    /** A leaf of a plan, with different rows in each run. */
    public static final class Rows extends RDD {
        private final StructType schema;
        private final transient RDD source;
        private final transient UnsafeProjection projection;
        private final transient List rows = new ArrayList();

        public Rows(SparkContext spark, StructType schema, RDD source) {
            super(
                spark,
                (scala.collection.immutable.Seq) scala.collection.immutable.Seq$.MODULE$.empty(),
                scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class));
            this.schema = schema;
            this.source = source;
            this.projection = UnsafeProjection.create(schema);
        }

        /** Its statistics say that it is small: Spark would shuffle larger inputs before joining them. */
        public Dataset frame(SparkSession session) {
            Statistics small = new Statistics(
                scala.math.BigInt.apply(1000), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
            return Dataset.ofRows(session, new LogicalRDD(
                DataTypeUtils.toAttributes(schema), this, SinglePartition$.MODULE$,
                (scala.collection.immutable.Seq) scala.collection.immutable.Seq$.MODULE$.empty(), false,
                scala.Option.empty(), session, scala.Option.apply(small), scala.Option.empty()));
        }

        public void load(byte[] batch, TaskContext context) {
            copy(ArrowConverters$.MODULE$.fromBatchIterator(
                scala.collection.Iterator$.MODULE$.single(batch), schema, "UTC", false, false, context));
        }

        public void fill(TaskContext context) {
            copy(source.iterator(source.partitions()[0], context));
        }

        private void copy(scala.collection.Iterator found) {
            rows.clear();
            while (found.hasNext()) {
                rows.add(projection.apply((InternalRow) found.next()).copy());
            }
        }

        public scala.collection.Iterator compute(Partition split, TaskContext context) {
            return new InterruptibleIterator(
                context, scala.jdk.javaapi.CollectionConverters.asScala(rows.iterator()));
        }

        public Partition[] getPartitions() {
            return new Partition[] {new FilePartition(0, new PartitionedFile[0])};
        }
    }
}
