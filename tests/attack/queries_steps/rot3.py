import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/rot'; w='/tmp/attackq/rot3'; shutil.rmtree(w,ignore_errors=True); os.makedirs(w)
QS=json.load(open('/tmp/attackq/qs.json')); exp=json.load(open(d+'/exp.json'))
subprocess.run(['cp','-a',d+'/gold.d',w+'/x.svcdb.d']); shutil.copy(d+'/gold',w+'/x.svcdb')
import glob
fs=sorted(glob.glob(w+'/x.svcdb.d/views/query*/files/*/index-5/*.seg'))
print(len(fs),fs[:3]); os.unlink(fs[0])
s=S(w+'/x.svcdb')
for i,(p,wh,k) in enumerate(QS):
    r=s.query(p,wh,**k); print(i,r[0],str(r[1])[:120])
print('status',s.q('GET','/query/status')); print('health',s.q('GET','/system/health'),s.q('GET','/health/ready'),s.q('GET','/healthz'))
print('cli idx',cli('index','status','-D',s.base,'/')); 
c=cli('status','-D',w+'/x.svcdb'); print('status',c.returncode,c.stdout[-900:])
c=cli('plugins','doctor','-D',w+'/x.svcdb'); print('doctor',c.returncode,c.stdout[-900:],c.stderr[-300:])
print('rebuild',s.q('POST','/query/rebuild',{})); time.sleep(10)
for i in (9,10,11): p,wh,k=QS[i]; r=s.query(p,wh,**k); print('after rebuild',i,r[0],str(r[1])[:120])
print('put',s.put('/new.json',{'t':1})[0])
for i in (9,10,11): p,wh,k=QS[i]; r=s.query(p,wh,**k); print('after put',i,r[0],str(r[1])[:120])
s.stop(); s.start()
for i in (9,10,11): p,wh,k=QS[i]; r=s.query(p,wh,**k); print('after restart',i,r[0],str(r[1])[:120])
s.stop()
